/**
 * Wiring point: builds every storage over an open store. A container adds its own storages over the same handle.
 *
 * @module
 */
import type { AuditStorage } from "./audit/types.ts";
import type { Databases } from "./db/database.ts";
import type { SqliteDatabase } from "./db/sqlite.ts";
import type { OutboxStorage } from "./outbox/types.ts";
import type { TenancyStorage } from "./tenancy/types.ts";
import type { WorkStorage } from "./work/storage.ts";

/** An open store: what storages are built over. */
export type Store =
  | { readonly engine: "sqlite"; readonly db: SqliteDatabase }
  | {
    readonly engine: "postgres";
    readonly databases: Databases;
    /** The SQL expression of database time. Default `now()`; tests give one that can be shifted. */
    readonly nowSql?: string;
  };

/** One storage a room. */
export interface Storages {
  readonly tenancy: TenancyStorage;
  readonly outbox: OutboxStorage;
  readonly audit: AuditStorage;
  readonly work: WorkStorage;
}
