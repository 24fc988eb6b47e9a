/**
 * Sessions and socket tickets on the embedded store: the part of its tenancy storage that is about secrets.
 *
 * @module
 */
import type { Role } from "../../core/context.ts";
import type { SqliteDatabase, SqliteRow } from "../../db/sqlite.ts";
import type { SecretHolder, Session, SessionInsert, TicketInsert } from "../types.ts";

const LIVE_MEMBER = `
  from core_memberships m join core_orgs o on o.id = m.org_id
  where m.org_id = ? and m.user_id = ? and m.ended_at is null and o.ended_at is null`;

const COLUMNS = "org_id, id, user_id, created_at, last_used_at, expires_at, ended_at";

const CREATE_SESSION = `
  insert into core_sessions (org_id, id, user_id, secret_digest, created_at, last_used_at, expires_at)
  select m.org_id, ?, m.user_id, ?, ?, ?, ? ${LIVE_MEMBER}
  on conflict (org_id, id) do update set last_used_at = last_used_at
  where secret_digest = excluded.secret_digest and user_id = excluded.user_id
  returning ${COLUMNS}`;

// The role of a membership that lives since before the row began, in an org that lives.
function roleOf(table: string): string {
  return `(select m.role from core_memberships m join core_orgs o on o.id = m.org_id
    where m.org_id = ${table}.org_id and m.user_id = ${table}.user_id and m.ended_at is null and o.ended_at is null
      and (m.revived_at is null or ${table}.created_at >= m.revived_at))`;
}

const TOUCH_SESSION = `
  update core_sessions set last_used_at = max(last_used_at, ?)
  where org_id = ? and secret_digest = ? and ended_at is null and expires_at > ? and last_used_at > ?
    and ${roleOf("core_sessions")} is not null
  returning user_id, ${roleOf("core_sessions")} as role`;

const END_SESSION = `
  update core_sessions set ended_at = coalesce(ended_at, ?)
  where org_id = ? and id = ? and (? is null or user_id = ?)`;

const CREATE_TICKET = `
  insert into core_socket_tickets (org_id, user_id, secret_digest, created_at, expires_at)
  select m.org_id, m.user_id, ?, ?, ? ${LIVE_MEMBER}
  on conflict (org_id, secret_digest) do update set expires_at = expires_at where user_id = excluded.user_id`;

const REDEEM_TICKET = `
  update core_socket_tickets set redeemed_at = ?
  where org_id = ? and secret_digest = ? and redeemed_at is null and expires_at > ?
    and ${roleOf("core_socket_tickets")} is not null
  returning user_id, ${roleOf("core_socket_tickets")} as role`;

const PURGE_SESSIONS = `
  delete from core_sessions where rowid in (
    select rowid from core_sessions where ended_at is not null or expires_at <= ? or last_used_at <= ? limit ?)`;

const PURGE_TICKETS = `
  delete from core_socket_tickets where rowid in (
    select rowid from core_socket_tickets where redeemed_at is not null or expires_at <= ? limit ?)`;

/** What `SqliteTenancyStorage` hands on to. */
export class SqliteSessions {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** As `TenancyStorage.createSession`. */
  createSession(orgId: string, session: SessionInsert): Promise<Session | null> {
    const { id, userId, digest, lifetimeMs } = session;
    return this.#db.write((s) => {
      const times = [s.nowMs, s.nowMs, s.nowMs + lifetimeMs];
      const row = s.get(CREATE_SESSION, id, digest, ...times, orgId, userId);
      return row === undefined ? null : sessionOf(row);
    });
  }

  /** As `TenancyStorage.touchSession`. */
  touchSession(orgId: string, digest: string, idleMs: number): Promise<SecretHolder | null> {
    return this.#db.write((s) => holderOf(s.get(TOUCH_SESSION, s.nowMs, orgId, digest, s.nowMs, s.nowMs - idleMs)));
  }

  /** As `TenancyStorage.endSession`. */
  endSession(orgId: string, sessionId: string, userId: string | null): Promise<boolean> {
    return this.#db.write((s) => s.run(END_SESSION, s.nowMs, orgId, sessionId, userId, userId) > 0);
  }

  /** As `TenancyStorage.createSocketTicket`. */
  createSocketTicket(orgId: string, ticket: TicketInsert): Promise<boolean> {
    const { userId, digest, ttlMs } = ticket;
    return this.#db.write((s) => s.run(CREATE_TICKET, digest, s.nowMs, s.nowMs + ttlMs, orgId, userId) > 0);
  }

  /** As `TenancyStorage.redeemSocketTicket`. */
  redeemSocketTicket(orgId: string, digest: string): Promise<SecretHolder | null> {
    return this.#db.write((s) => holderOf(s.get(REDEEM_TICKET, s.nowMs, orgId, digest, s.nowMs)));
  }

  /** As `TenancyStorage.purgeSessions`. */
  purgeSessions(idleMs: number, limit: number): Promise<number> {
    return this.#db.write((s) => s.run(PURGE_SESSIONS, s.nowMs, s.nowMs - idleMs, limit));
  }

  /** As `TenancyStorage.purgeSocketTickets`. */
  purgeSocketTickets(limit: number): Promise<number> {
    return this.#db.write((s) => s.run(PURGE_TICKETS, s.nowMs, limit));
  }
}

function holderOf(row: SqliteRow | undefined): SecretHolder | null {
  return row === undefined ? null : { userId: String(row.user_id), role: row.role as Role };
}

function sessionOf(row: SqliteRow): Session {
  return {
    id: String(row.id),
    orgId: String(row.org_id),
    userId: String(row.user_id),
    createdAt: new Date(Number(row.created_at)),
    lastUsedAt: new Date(Number(row.last_used_at)),
    expiresAt: new Date(Number(row.expires_at)),
    endedAt: row.ended_at === null || row.ended_at === undefined ? null : new Date(Number(row.ended_at)),
  };
}
