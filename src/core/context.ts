/**
 * Contexts: who asks, and for whom. A context is a *stage*: a request stage knows the request, an operation stage also
 * knows the org and the user. Only `tenancy/` mints either (see `tenancy/contexts.ts`); everybody else passes on what it
 * was given, so a tenant can never be made up on the way.
 *
 * @module
 */

/** The key of the brand. Only its type is given away, so nothing outside can bear it. */
export declare const STAGE: unique symbol;

/** The program that acts: its type and `<name>@<release>`. */
export interface AppContext {
  /** What kind of program it is. */
  readonly type: "WORKER" | "CLI" | "SERVICE";
  /** `<program>@<release>`, for example `shipment-notifier@0.1.0`. */
  readonly version: string;
}

/** Roles of a membership; `SERVICE` is reserved for work done on an org's behalf. */
export type Role = "OWNER" | "MEMBER" | "SERVICE";

/** The first stage: a request without a tenant. Bookkeeping and claims run under it. */
export interface RequestContext {
  /** The brand: only `tenancy/` mints this stage. */
  readonly [STAGE]: "request";
  /** A uuid naming this request. */
  readonly requestId: string;
  /** W3C trace context of the caller, when it sent one. */
  readonly traceparent?: string;
  /** The program that acts. */
  readonly app: AppContext;
}

/** The second stage: an operation of one user in one org. */
export interface OpContext {
  /** The brand: only `tenancy/` mints this stage. */
  readonly [STAGE]: "op";
  /** The tenant: whose rows this operation reads and writes. */
  readonly orgId: string;
  /** The acting user; `EMPTY_UUID` for the org's own service context. */
  readonly userId: string;
  /** By which right the user acts. */
  readonly role: Role;
  /** A uuid naming the request at hand. */
  readonly requestId: string;
  /** The request that caused this work, when it is not the request at hand. */
  readonly causedByRequestId?: string;
  /** W3C trace context to link to, when there is one. */
  readonly traceparent?: string;
  /** The program that acts. */
  readonly app: AppContext;
}
