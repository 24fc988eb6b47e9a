/**
 * Orgs, users and memberships, and the two things work needs of them: who an item runs as, and which orgs live.
 *
 * @module
 */
import type { AppContext, OpContext, RequestContext, Role } from "../core/context.ts";
import type { NotFoundError } from "../core/errors.ts";

/** A tenant. `endedAt` is set when it is gone: its items are never run again. */
export interface Org {
  /** Names the org for ever. */
  readonly id: string;
  /** For people, 1–200 characters. */
  readonly name: string;
  /** When it was made. */
  readonly createdAt: Date;
  /** When it ended; null while it lives. */
  readonly endedAt: Date | null;
}

/** A person, across orgs. */
export interface User {
  /** Names the user for ever. */
  readonly id: string;
  /** For people, 1–200 characters. */
  readonly name: string;
  /** When the user was made. */
  readonly createdAt: Date;
}

/** A user's place in an org; ended memberships stay as history. */
export interface Membership {
  /** The org. */
  readonly orgId: string;
  /** Its member. */
  readonly userId: string;
  /** By which right the member acts. */
  readonly role: Role;
  /** When it began. */
  readonly createdAt: Date;
  /** When it ended; null while it lives. */
  readonly endedAt: Date | null;
}

/** Who an item runs for: the pair asked of `claimContexts`, one an item. */
export interface ClaimSubject {
  /** The org the item is of. */
  readonly orgId: string;
  /** The enqueuer; `EMPTY_UUID` asks for the org's service context. */
  readonly userId: string;
  /** The request that enqueued the item, when there was one. */
  readonly causedByRequestId: string | null;
  /** W3C trace context of that request, when it had one. */
  readonly traceparent: string | null;
}

/** What storage says of an (org, user) pair. */
export interface SubjectState {
  /** The org asked about. */
  readonly orgId: string;
  /** The user asked about. */
  readonly userId: string;
  /** Whether the org is there and has not ended. */
  readonly orgLive: boolean;
  /** Whether the user holds a live membership of the org. */
  readonly memberLive: boolean;
  /** The role of that membership; null without one. */
  readonly role: Role | null;
}

/** Operations on tenancy. */
export interface TenancyManager {
  /** Mints the first stage. `requestId` defaults to a fresh id. */
  requestContext(app: AppContext, options?: { requestId?: string; traceparent?: string }): RequestContext;
  /** Creates an org; the same id again changes nothing. */
  createOrg(rctx: RequestContext, org: { id?: string; name: string }): Promise<Org>;
  /** Creates a user; the same id again changes nothing. */
  createUser(rctx: RequestContext, user: { id?: string; name: string }): Promise<User>;
  /** Makes a user a member; an ended membership lives again, a live one is left as it stands. */
  addMember(rctx: RequestContext, member: { orgId: string; userId: string; role: Role }): Promise<Membership>;
  /** Ends a membership. Throws `NotFoundError` when there is no live one. */
  endMembership(rctx: RequestContext, orgId: string, userId: string): Promise<void>;
  /** Ends an org: its items are dead-lettered by whoever meets them. Ending twice is one ending. */
  endOrg(rctx: RequestContext, orgId: string): Promise<void>;
  /** The context of one member. Throws `NotFoundError` when the org is gone or the user is no live member. */
  memberContext(rctx: RequestContext, orgId: string, userId: string): Promise<OpContext>;
  /** The org's own context: role `SERVICE`, user `EMPTY_UUID`. Throws `NotFoundError` when the org is gone. */
  serviceContext(rctx: RequestContext, orgId: string): Promise<OpContext>;
  /**
   * Service contexts of live orgs in id order, a page at a time: pass the last org id to get the next page. An org
   * without members is among them.
   */
  serviceContexts(rctx: RequestContext, options: { afterOrgId?: string; limit: number }): Promise<OpContext[]>;
  /** Service contexts for the named orgs, live ones only; one read. */
  serviceContextsOf(rctx: RequestContext, orgIds: readonly string[]): Promise<OpContext[]>;
  /**
   * The contexts a claimed batch runs under: one read, one outcome a subject, in order. The enqueuer under role
   * `SERVICE`; the org's service context when the subject is `EMPTY_UUID` or no live member; `NotFoundError` when the
   * org is gone. Each carries the item's request as `causedByRequestId`, and the claim's own request id.
   *
   * @throws {UnavailableError} The read failed; the caller releases the batch.
   */
  claimContexts(rctx: RequestContext, subjects: readonly ClaimSubject[]): Promise<(OpContext | NotFoundError)[]>;
}

/** Storage of tenancy. */
export interface TenancyStorage {
  /** Inserts an org; false when the id exists (nothing changes). Tenant-less: the tenant does not exist yet. */
  createOrg(org: Org): Promise<boolean>;
  /** Null when there is no such org. */
  readOrg(orgId: string): Promise<Org | null>;
  /** Sets `ended_at` on database time when not set; false when there is no such org. Tenant-less. */
  endOrg(orgId: string): Promise<boolean>;
  /** Inserts a user; false when the id exists. Tenant-less: users belong to no org. */
  createUser(user: User): Promise<boolean>;
  /** Tenant-less: users belong to no org. */
  readUser(userId: string): Promise<User | null>;
  /** Inserts or revives a membership and returns the row as it stands. Throws `NotFoundError` when org or user is absent. */
  writeMembership(membership: Membership): Promise<Membership>;
  /** False when there is no live membership. */
  endMembership(orgId: string, userId: string): Promise<boolean>;
  /** States of the given pairs, in order, duplicates allowed: one read. Tenant-less: a claimed batch spans orgs. */
  readSubjects(pairs: readonly { orgId: string; userId: string }[]): Promise<SubjectState[]>;
  /** Ids of live orgs after `afterOrgId` in id order. Tenant-less: the sweep visits every org. */
  liveOrgIds(afterOrgId: string | null, limit: number): Promise<string[]>;
}
