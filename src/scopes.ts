/**
 * The scope map: whose rows each Postgres table holds. A house test holds it to the database: an `org` table has its
 * `org_id`, forced row-level security and both policies; a `system` table is closed to the runtime login.
 *
 * @module
 */
import type { Area } from "./db/database.ts";

/** `org`: every row belongs to one org. `system`: rows belong to none; only the system login reaches them. */
export type Scope = "org" | "system";

/** One table's entry. */
export interface TableScope {
  /** The area whose database holds it. */
  readonly area: Area;
  /** Whose rows it holds. */
  readonly scope: Scope;
  /** The column that names the org. Default `org_id`; `core.orgs` is the org itself. */
  readonly orgColumn?: string;
  /** Indexes that serve tenant-less statements and so do not lead with the org. */
  readonly tenantlessIndexes?: readonly string[];
  /** Whether the host login reaches it, by policies of its own. */
  readonly hosts?: boolean;
}

/** Every table of the house but the migrator's own, as `schema.table`. */
export const TABLE_SCOPES: Readonly<Record<string, TableScope>> = {
  "core.orgs": { area: "core", scope: "org", orgColumn: "id" },
  "core.users": { area: "core", scope: "system" },
  "core.memberships": { area: "core", scope: "org" },
  "core.outbox": { area: "core", scope: "org", tenantlessIndexes: ["outbox_pending", "outbox_done"] },
  "core.idempotency_markers": { area: "core", scope: "org", tenantlessIndexes: ["idempotency_markers_age"] },
  "core.sessions": {
    area: "core",
    scope: "org",
    tenantlessIndexes: ["sessions_ended", "sessions_expiry", "sessions_idle"],
  },
  "core.socket_tickets": {
    area: "core",
    scope: "org",
    tenantlessIndexes: ["socket_tickets_redeemed", "socket_tickets_expiry"],
  },
  "core.cache_entries": { area: "core", scope: "system" },
  "queue.work_items": {
    area: "queue",
    scope: "org",
    tenantlessIndexes: [
      "work_items_claim",
      // Of the optional chain `fair`.
      "work_items_fair",
      "work_items_future",
      "work_items_lease",
      "work_items_done",
      "work_items_failed",
      "work_items_unaudited",
    ],
    hosts: true,
  },
  "queue.work_history": { area: "queue", scope: "org", tenantlessIndexes: ["work_history_age"] },
  "queue.work_keys": { area: "queue", scope: "org", tenantlessIndexes: ["work_keys_age"] },
  "queue.sweep_steps": { area: "queue", scope: "system" },
  "queue.hosts": { area: "queue", scope: "system", hosts: true },
  "queue.attempts": { area: "queue", scope: "org", tenantlessIndexes: ["attempts_age"], hosts: true },
  "activity.event_cursors": { area: "activity", scope: "org" },
  "activity.events": { area: "activity", scope: "org" },
  "activity.audit_entries": { area: "activity", scope: "org" },
};
