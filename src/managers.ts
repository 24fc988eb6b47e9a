/**
 * Wiring point: builds every manager over the storages.
 *
 * @module
 */
import type { AuditManager } from "./audit/types.ts";
import type { OutboxRelay } from "./outbox/types.ts";
import type { TenancyManager } from "./tenancy/types.ts";
import type { WorkManager } from "./work/manager.ts";

/** One manager a room. */
export interface Managers {
  readonly tenancy: TenancyManager;
  readonly outbox: OutboxRelay;
  readonly audit: AuditManager;
  readonly work: WorkManager;
}
