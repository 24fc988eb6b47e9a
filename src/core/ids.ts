/**
 * Identifiers. Ids are uuid v7, minted above storage: they sort by time, so an index on them grows at its end.
 *
 * @module
 */
import { v5, v7 } from "uuid";

/** The system user: signs bookkeeping, and acts where no member is left. */
export const EMPTY_UUID = "00000000-0000-0000-0000-000000000000";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Mints a uuid v7. */
export function newId(): string {
  return v7();
}

/** Derives the same uuid from the same name, for rows whose identity follows from another's. */
export function derivedId(name: string, namespace: string): string {
  return v5(name, namespace);
}

/** Whether `text` has the form of a uuid, of any version and either case. */
export function isUuid(text: unknown): text is string {
  return typeof text === "string" && UUID.test(text);
}
