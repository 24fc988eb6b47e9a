/**
 * Endpoints: how the webhook hosts of an org fare. Too many failures in a row and one counts as down: its shipments park
 * instead of being sent, and from time to time one of them tries it again.
 *
 * ```
 *            failure, within the bound          failure past the bound
 *   (no row) ───────────────▶ failing ────────────────────────────▶ down ──┐ a probe fails:
 *       ▲                        │                                    │ ▲  │ the next one waits longer
 *       └────── it answers ──────┴──── it answers: its parked ────────┘ └──┘
 *                                      shipments resume
 * ```
 *
 * The state stands in the database, each move is one statement: it survives restarts and is one for all workers.
 *
 * @module
 */
import type { OpContext } from "../../../mod.ts";

/** How an endpoint fares. */
export interface Endpoint {
  /** Host and port, as in its URL. */
  readonly host: string;
  /** Failures in a row; while it is down, only those of probes are added. */
  readonly failures: number;
  /** When it may be tried again, database time; null while it is not down. */
  readonly probeAt: Date | null;
}

/** When an endpoint counts as down, and how often it is tried then. */
export interface EndpointPolicy {
  /** So many failures in a row and it is down. Default 3: no more than an item has attempts, or its shipment is lost first. */
  readonly downAfter: number;
  /** How long after it went down it is tried again, milliseconds; doubles with each probe that fails. Default 5 s. */
  readonly probeMs: number;
  /** The longest time between two probes, milliseconds. Default 15 min. */
  readonly probeCapMs: number;
  /** How long one probe keeps the others waiting, milliseconds: longer than one takes. Default 75 s. */
  readonly probeHoldMs: number;
}

/** Operations on endpoints. */
export interface EndpointManager {
  /** Null when it answered last time, or was never asked. */
  read(ctx: OpContext, host: string): Promise<Endpoint | null>;
  /** Takes the probe of an endpoint that is down: true for one caller, when its time has come. */
  takeProbe(ctx: OpContext, host: string): Promise<boolean>;
  /**
   * Notes a failure: no answer, or one that says that the endpoint is unwell.
   *
   * @param probe Whether it was tried under a probe: other failures of one that is down tell nothing new.
   */
  failed(ctx: OpContext, host: string, probe: boolean): Promise<Endpoint>;
  /** Notes that it answered: it is up, and shipments that wait for it resume, up to 1 000 of them one after the other. */
  answered(ctx: OpContext, host: string): Promise<void>;
}

/** Storage of endpoints. Two implementations, one contract. */
export interface EndpointStorage {
  /** Null when there is no row. */
  readEndpoint(orgId: string, host: string): Promise<Endpoint | null>;
  /** Moves `probeAt` on by `holdMs` when the endpoint is down and it has come: a compare-and-set one caller wins. */
  takeProbe(orgId: string, host: string, holdMs: number): Promise<boolean>;
  /** Counts a failure as `EndpointManager.failed` says, by the policy (`probeDelay`); the row as it stands then. */
  failed(orgId: string, host: string, failure: EndpointPolicy & { readonly probe: boolean }): Promise<Endpoint>;
  /**
   * Removes the row. When the endpoint was down, shipments parked for it become due, one every `RESUME_SPACING_MS`, at
   * most `RESUME_PULL`; the others at their own time.
   */
  answered(orgId: string, host: string): Promise<void>;
}
