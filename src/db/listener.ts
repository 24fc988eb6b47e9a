/**
 * The listening connection topics are given.
 *
 * @module
 */
import { PostgresClient } from "./client.ts";

/**
 * Makes the function that opens a listening connection.
 *
 * @param url A direct URL: a transaction-mode pooler accepts LISTEN and delivers nothing.
 */
export function listenOn(
  url: string,
): (onNotify: (channel: string, payload: string) => void) => Promise<PostgresClient> {
  return (onNotify) => PostgresClient.open(url, { applicationName: "laneway-listen", onNotify });
}
