/**
 * The pure rules of endpoints.
 *
 * @module
 */
import type { EndpointPolicy } from "./types.ts";

/** Three failures in a row; tried again after 5 s, doubling to 15 min. */
export const DEFAULT_ENDPOINT_POLICY: EndpointPolicy = {
  downAfter: 3,
  probeMs: 5_000,
  probeCapMs: 900_000,
  probeHoldMs: 75_000,
};

/** How many parked shipments one answer makes due. */
export const RESUME_PULL = 1_000;

/** How far apart they become due, milliseconds. */
export const RESUME_SPACING_MS = 100;

/**
 * How long an endpoint that is down is left alone after so many failures, milliseconds. Never overflows.
 *
 * sql: repeated by `failed` of both storages.
 */
export function probeDelay(
  failures: number,
  policy: Pick<EndpointPolicy, "downAfter" | "probeMs" | "probeCapMs">,
): number {
  const doublings = Math.min(Math.max(failures - policy.downAfter, 0), 30);
  return Math.min(policy.probeMs * 2 ** doublings, policy.probeCapMs);
}

/** The host of a URL, port included; never its path or query, so it may stand in messages. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host || "(no host)";
}
