/**
 * Operations on tenancy: creates orgs, users and memberships, and mints every context.
 *
 * @module
 */
import { type Clock, systemClock } from "../core/clock.ts";
import type { AppContext, OpContext, RequestContext, Role } from "../core/context.ts";
import { NotFoundError, UnavailableError, ValidationError } from "../core/errors.ts";
import { EMPTY_UUID, isUuid, newId } from "../core/ids.ts";
import { mintOp, mintRequest } from "./contexts.ts";
import { checkId, checkMemberRole, checkName, checkPage, checkTicketTtl } from "./rules.ts";
import { digestOfSecret, isSecret, newSecret } from "./secrets.ts";
import type {
  ClaimSubject,
  Membership,
  NewSession,
  Org,
  SecretHolder,
  SubjectState,
  TenancyManager,
  TenancyStorage,
  User,
} from "./types.ts";

/** What a tenancy manager may be given. */
export interface TenancyManagerOptions {
  /** Stamps `createdAt`. Default the system clock. */
  readonly clock?: Clock;
  /** A session not used for this long is over, milliseconds. Default 7 days. */
  readonly sessionIdleMs?: number;
  /** A session is over this long after it began, however much it is used, milliseconds. Default 30 days. */
  readonly sessionLifetimeMs?: number;
  /** Told of an org that has just ended, for what lies in other areas. Waited for; must not reject. */
  readonly onOrgEnded?: (orgId: string) => Promise<void>;
}

const DAY_MS = 86_400_000;
const TICKET_TTL_MS = 30_000;
const PURGE_BATCH = 1_000;

/** Builds the tenancy manager over its storage. */
export function createTenancyManager(storage: TenancyStorage, options: TenancyManagerOptions = {}): TenancyManager {
  return new TenancyManagerImpl(storage, options);
}

class TenancyManagerImpl implements TenancyManager {
  readonly #storage: TenancyStorage;
  readonly #clock: Clock;
  readonly #sessionIdleMs: number;
  readonly #sessionLifetimeMs: number;
  readonly #onOrgEnded: (orgId: string) => Promise<void>;

  constructor(storage: TenancyStorage, options: TenancyManagerOptions) {
    this.#storage = storage;
    this.#clock = options.clock ?? systemClock;
    this.#sessionIdleMs = options.sessionIdleMs ?? 7 * DAY_MS;
    this.#sessionLifetimeMs = options.sessionLifetimeMs ?? 30 * DAY_MS;
    this.#onOrgEnded = options.onOrgEnded ?? (() => Promise.resolve());
  }

  requestContext(app: AppContext, options: { requestId?: string; traceparent?: string } = {}): RequestContext {
    const { requestId = newId(), traceparent } = options;
    if (!isUuid(requestId)) {
      throw new ValidationError("requestId", `Cannot use requestId "${String(requestId)}": it must be a uuid`);
    }
    return mintRequest(app, requestId.toLowerCase(), traceparent);
  }

  async createOrg(_rctx: RequestContext, org: { id?: string; name: string }): Promise<Org> {
    const wanted: Org = {
      id: org.id === undefined ? newId() : checkId("org.id", org.id),
      name: checkName("org.name", org.name),
      createdAt: new Date(this.#clock.now()),
      endedAt: null,
    };
    return await createOrReadBack(
      wanted,
      (row) => this.#storage.createOrg(row),
      () => this.#storage.readOrg(wanted.id),
    );
  }

  async createUser(_rctx: RequestContext, user: { id?: string; name: string }): Promise<User> {
    const wanted: User = {
      id: user.id === undefined ? newId() : checkId("user.id", user.id),
      name: checkName("user.name", user.name),
      createdAt: new Date(this.#clock.now()),
    };
    return await createOrReadBack(
      wanted,
      (row) => this.#storage.createUser(row),
      () => this.#storage.readUser(wanted.id),
    );
  }

  async addMember(
    _rctx: RequestContext,
    member: { orgId: string; userId: string; role: Role },
  ): Promise<Membership> {
    return await this.#storage.writeMembership({
      orgId: checkId("orgId", member.orgId),
      userId: checkId("userId", member.userId),
      role: checkMemberRole(member.role),
      createdAt: new Date(this.#clock.now()),
      endedAt: null,
    });
  }

  async endMembership(_rctx: RequestContext, orgId: string, userId: string): Promise<void> {
    const pair = { orgId: checkId("orgId", orgId), userId: checkId("userId", userId) };
    let ended: boolean;
    try {
      ended = await this.#storage.endMembership(pair.orgId, pair.userId);
    } catch (error) {
      if (!isUnknown(error)) throw error;
      // The answer was lost. No live membership now means it landed, or there was none: what was asked for holds.
      const [state] = await this.#storage.readSubjects([pair]);
      if (state?.memberLive !== false) throw error;
      return;
    }
    if (!ended) {
      throw new NotFoundError(`Cannot end the membership of user ${userId} in org ${orgId}: there is no live one`);
    }
  }

  async endOrg(_rctx: RequestContext, orgId: string): Promise<void> {
    const id = checkId("orgId", orgId);
    if (!await this.#storage.endOrg(id)) throw new NotFoundError(`Cannot end org ${id}: there is no such org`);
    await this.#onOrgEnded(id);
  }

  async memberContext(rctx: RequestContext, orgId: string, userId: string): Promise<OpContext> {
    const pair = { orgId: checkId("orgId", orgId), userId: checkId("userId", userId) };
    const [state] = await this.#storage.readSubjects([pair]);
    if (state === undefined || !state.orgLive) throw orgGone(pair.orgId);
    if (state.role === null) {
      throw new NotFoundError(`Cannot act for user ${pair.userId} in org ${pair.orgId}: the user is no live member`);
    }
    return mintOp(rctx, { ...pair, role: state.role });
  }

  async serviceContext(rctx: RequestContext, orgId: string): Promise<OpContext> {
    const [ctx] = await this.serviceContextsOf(rctx, [orgId]);
    if (ctx === undefined) throw orgGone(orgId);
    return ctx;
  }

  async serviceContexts(
    rctx: RequestContext,
    options: { afterOrgId?: string; limit: number },
  ): Promise<OpContext[]> {
    const after = options.afterOrgId === undefined ? null : checkId("afterOrgId", options.afterOrgId);
    const ids = await this.#storage.liveOrgIds(after, checkPage(options.limit));
    return ids.map((orgId) => mintService(rctx, orgId));
  }

  async serviceContextsOf(rctx: RequestContext, orgIds: readonly string[]): Promise<OpContext[]> {
    if (orgIds.length === 0) return [];
    const pairs = orgIds.map((orgId) => ({ orgId: checkId("orgId", orgId), userId: EMPTY_UUID }));
    const states = await this.#storage.readSubjects(pairs);
    return states.filter((state) => state.orgLive).map((state) => mintService(rctx, state.orgId));
  }

  async claimContexts(
    rctx: RequestContext,
    subjects: readonly ClaimSubject[],
  ): Promise<(OpContext | NotFoundError)[]> {
    if (subjects.length === 0) return [];
    // A batch is of few orgs and fewer users: each pair is asked for once.
    const pairs: { orgId: string; userId: string }[] = [];
    const places = new Map<string, Map<string, number>>();
    for (const { orgId, userId } of subjects) {
      const users = places.get(orgId) ?? new Map<string, number>();
      if (users.size === 0) places.set(orgId, users);
      if (!users.has(userId)) users.set(userId, pairs.push({ orgId, userId }) - 1);
    }
    const states = await this.#storage.readSubjects(pairs);
    return subjects.map((subject) => {
      const place = places.get(subject.orgId)?.get(subject.userId);
      return contextOf(rctx, subject, place === undefined ? undefined : states[place]);
    });
  }

  async createSession(ctx: OpContext): Promise<NewSession> {
    const userId = memberOf(ctx, "begin a session");
    const secret = newSecret();
    const insert = {
      id: newId(),
      userId,
      digest: await digestOfSecret(secret),
      lifetimeMs: this.#sessionLifetimeMs,
    };
    const session = await againIfLost(() => this.#storage.createSession(ctx.orgId, insert));
    if (session === null) throw noMember(ctx);
    return { session, secret };
  }

  async authenticate(rctx: RequestContext, orgId: string, secret: string): Promise<OpContext> {
    return await this.#admit(
      rctx,
      { orgId, secret },
      (org, digest) => this.#storage.touchSession(org, digest, this.#sessionIdleMs),
    );
  }

  async endSession(ctx: OpContext, sessionId: string): Promise<void> {
    const id = checkId("sessionId", sessionId);
    const whose = ctx.role === "MEMBER" ? ctx.userId : null;
    if (await againIfLost(() => this.#storage.endSession(ctx.orgId, id, whose))) return;
    throw new NotFoundError(`Cannot end session ${id}: there is none of this id that is yours to end`);
  }

  async createSocketTicket(ctx: OpContext, ttlMs = TICKET_TTL_MS): Promise<string> {
    const userId = memberOf(ctx, "issue a socket ticket");
    const secret = newSecret();
    const ticket = { userId, digest: await digestOfSecret(secret), ttlMs: checkTicketTtl(ttlMs) };
    if (!await againIfLost(() => this.#storage.createSocketTicket(ctx.orgId, ticket))) throw noMember(ctx);
    return secret;
  }

  async redeemSocketTicket(rctx: RequestContext, orgId: string, secret: string): Promise<OpContext> {
    return await this.#admit(rctx, { orgId, secret }, (org, digest) => this.#storage.redeemSocketTicket(org, digest));
  }

  purgeSessions(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeSessions(this.#sessionIdleMs, PURGE_BATCH);
  }

  purgeSocketTickets(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeSocketTickets(PURGE_BATCH);
  }

  /** Whatever refuses, refuses alike: who guesses learns neither which orgs there are nor why. */
  async #admit(
    rctx: RequestContext,
    { orgId, secret }: { orgId: string; secret: string },
    look: (orgId: string, digest: string) => Promise<SecretHolder | null>,
  ): Promise<OpContext> {
    const known = isUuid(orgId) && isSecret(secret);
    const holder = known ? await look(orgId.toLowerCase(), await digestOfSecret(secret)) : null;
    if (holder === null) throw new NotFoundError("Cannot sign in: the secret is of nothing that lives in this org");
    return mintOp(rctx, { orgId: orgId.toLowerCase(), userId: holder.userId, role: holder.role });
  }
}

function memberOf(ctx: OpContext, what: string): string {
  if (ctx.userId !== EMPTY_UUID) return ctx.userId;
  throw new ValidationError("ctx", `Cannot ${what} for org ${ctx.orgId} itself: it is for members; use memberContext`);
}

function noMember(ctx: OpContext): NotFoundError {
  return new NotFoundError(`Cannot let user ${ctx.userId} into org ${ctx.orgId}: the user is no live member`);
}

/** Repeats a write that may be repeated when its answer was lost. */
async function againIfLost<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUnknown(error)) throw error;
    return await write();
  }
}

function contextOf(
  rctx: RequestContext,
  subject: ClaimSubject,
  state: SubjectState | undefined,
): OpContext | NotFoundError {
  if (state === undefined || !state.orgLive) return orgGone(subject.orgId);
  const { orgId, causedByRequestId, traceparent } = subject;
  const userId = state.memberLive ? subject.userId : EMPTY_UUID;
  return mintOp(rctx, { orgId, userId, role: "SERVICE", causedByRequestId, traceparent });
}

function mintService(rctx: RequestContext, orgId: string): OpContext {
  return mintOp(rctx, { orgId, userId: EMPTY_UUID, role: "SERVICE" });
}

function orgGone(orgId: string): NotFoundError {
  return new NotFoundError(`Cannot act in org ${orgId}: there is no such org, or it has ended`);
}

function isUnknown(error: unknown): boolean {
  return error instanceof UnavailableError && error.outcome === "unknown";
}

/**
 * Creates a row or gives the one that holds its id. When the answer was lost the row is read back: found, it is there
 * whoever put it; not found, the failure is told and the caller may repeat.
 */
async function createOrReadBack<T>(
  wanted: T,
  create: (wanted: T) => Promise<boolean>,
  read: () => Promise<T | null>,
): Promise<T> {
  let lost: unknown;
  try {
    if (await create(wanted)) return wanted;
  } catch (error) {
    if (!isUnknown(error)) throw error;
    lost = error;
  }
  const found = await read();
  if (found !== null) return found;
  throw lost ?? new NotFoundError("Cannot read a row back that was said to exist: it was removed meanwhile");
}
