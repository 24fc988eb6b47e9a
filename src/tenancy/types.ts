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

/**
 * A person's session in an org. It is over when it was ended, when it was not used for the idle time, at its absolute
 * end, when the membership ended (also if it lives again), and when the org ended.
 */
export interface Session {
  /** Names the session; it is no secret. */
  readonly id: string;
  /** The org. */
  readonly orgId: string;
  /** Whose session it is. */
  readonly userId: string;
  /** Database time of its beginning. */
  readonly createdAt: Date;
  /** When it was authenticated with last, its beginning included. */
  readonly lastUsedAt: Date;
  /** Its absolute end, however much it is used. */
  readonly expiresAt: Date;
  /** When it was ended; null until then. */
  readonly endedAt: Date | null;
}

/** A session just begun, with its secret: told this once, stored nowhere. */
export interface NewSession {
  /** The session. */
  readonly session: Session;
  /** 256 bits, base64url, 43 characters. */
  readonly secret: string;
}

/** Who a secret stands for. */
export interface SecretHolder {
  /** The user. */
  readonly userId: string;
  /** The role of the live membership. */
  readonly role: Role;
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
  /**
   * Begins a session of the context's member. A lost answer is asked for again under the same id and secret.
   *
   * @throws {ValidationError} The context is an org's own, not a member's.
   * @throws {NotFoundError} The user is no live member any more, or the org has ended.
   */
  createSession(ctx: OpContext): Promise<NewSession>;
  /**
   * The context of whoever holds a live session's secret, and the session's idle time begun anew, in one statement. Safe
   * to repeat.
   *
   * @throws {NotFoundError} The same error for an unknown or malformed secret, an expired or ended session, an ended
   * membership, an ended or unknown org: it tells none from another.
   */
  authenticate(rctx: RequestContext, orgId: string, secret: string): Promise<OpContext>;
  /**
   * Ends a session: a member their own, an owner and the org's service any of the org. Ending twice is one ending.
   *
   * @throws {NotFoundError} There is no such session, or it is not the context's to end.
   */
  endSession(ctx: OpContext, sessionId: string): Promise<void>;
  /**
   * Issues a ticket with which the context's member opens one socket, where a session's secret cannot travel.
   *
   * @param ttlMs How long it may be redeemed, 1 s to 10 min. Default 30 s.
   * @returns Its secret: told this once, stored nowhere.
   * @throws As `createSession`; {ValidationError} also for a time to live out of range.
   */
  createSocketTicket(ctx: OpContext, ttlMs?: number): Promise<string>;
  /**
   * Redeems a ticket: of any number of callers at once, one gets the context. A lost answer may have spent the ticket:
   * ask for another one.
   *
   * @throws {NotFoundError} The same error for whatever it is that refuses: see `authenticate`.
   */
  redeemSocketTicket(rctx: RequestContext, orgId: string, secret: string): Promise<OpContext>;
  /** The sweep: removes sessions that ended, idled out or passed their absolute end, one batch. Returns how many. */
  purgeSessions(rctx: RequestContext): Promise<number>;
  /** The sweep: removes tickets redeemed or expired, one batch. Returns how many. */
  purgeSocketTickets(rctx: RequestContext): Promise<number>;
}

/** A session to be inserted; its times are database time. */
export interface SessionInsert {
  /** Its id. */
  readonly id: string;
  /** Whose it is. */
  readonly userId: string;
  /** SHA-256 of its secret, hexadecimal. */
  readonly digest: string;
  /** Its absolute lifetime, milliseconds. */
  readonly lifetimeMs: number;
}

/** A ticket to be inserted; its times are database time. */
export interface TicketInsert {
  /** Whose it is. */
  readonly userId: string;
  /** SHA-256 of its secret, hexadecimal. */
  readonly digest: string;
  /** How long it may be redeemed, milliseconds. */
  readonly ttlMs: number;
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
  /**
   * Inserts a session of a live member of a live org; inserting it again is success and changes nothing. Null when there
   * is no such member, or the id is another session's.
   */
  createSession(orgId: string, session: SessionInsert): Promise<Session | null>;
  /**
   * Touches the live session of a digest and says whose it is: not ended, before its absolute end, used within `idleMs`,
   * of a live member (since before the session began) of a live org. Null otherwise, and nothing is changed.
   */
  touchSession(orgId: string, digest: string, idleMs: number): Promise<SecretHolder | null>;
  /** Ends a session, keeping the first ending's time. False when there is none, or it is not `userId`'s (null: anybody's). */
  endSession(orgId: string, sessionId: string, userId: string | null): Promise<boolean>;
  /** Inserts a ticket of a live member of a live org; again is success. False when there is no such member. */
  createSocketTicket(orgId: string, ticket: TicketInsert): Promise<boolean>;
  /** Redeems the ticket of a digest, once, under the conditions of `touchSession`. Null otherwise. */
  redeemSocketTicket(orgId: string, digest: string): Promise<SecretHolder | null>;
  /** Deletes sessions that are over, at most `limit`. Tenant-less: what is over is over in all orgs. */
  purgeSessions(idleMs: number, limit: number): Promise<number>;
  /** Deletes tickets redeemed or expired, at most `limit`. Tenant-less: what is over is over in all orgs. */
  purgeSocketTickets(limit: number): Promise<number>;
}
