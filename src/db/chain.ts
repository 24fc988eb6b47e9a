/**
 * Migration chains: the history of one schema, in plain SQL, for Postgres and for SQLite.
 *
 * @module
 */
import type { Area } from "./database.ts";

/** One step of a chain. Each direction is one script and lands whole or not at all. */
export interface Migration {
  /** 1, 2, 3 … without gaps. */
  readonly version: number;
  /** Snake case, as in the file's name. */
  readonly name: string;
  /** The script that applies it. */
  readonly up: string;
  /** The script that takes it back. */
  readonly down: string;
}

/** One schema's chain. A worker's own chain has a name of its own and lives in the area whose database it needs. */
export interface MigrationChain {
  /** The chain's name; on Postgres also the schema it owns. */
  readonly name: string;
  /** Whose database it is applied to. */
  readonly area: Area;
  /** Its steps on Postgres, in order. */
  readonly postgres: readonly Migration[];
  /** SQLite has no schemas: tables carry the schema's name as prefix (`queue_work_items`). */
  readonly sqlite: readonly Migration[];
  /**
   * What needs it, for people (`--claim-order fair`): such a chain is applied only where it is named. Absent: always needed.
   */
  readonly optionalFor?: string;
}
