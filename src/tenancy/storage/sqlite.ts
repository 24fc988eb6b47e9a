/**
 * Tenancy on the embedded store.
 *
 * @module
 */
import type { Role } from "../../core/context.ts";
import { NotFoundError } from "../../core/errors.ts";
import type { SqliteDatabase, SqliteRow } from "../../db/sqlite.ts";
import type {
  Membership,
  Org,
  SecretHolder,
  Session,
  SessionInsert,
  SubjectState,
  TenancyStorage,
  TicketInsert,
  User,
} from "../types.ts";
import { SqliteSessions } from "./sqlite_sessions.ts";

const READ_ORG = "select id, name, created_at, ended_at from core_orgs where id = ?";

// Written over with itself when live, as on Postgres: one statement, and the row as it stands comes back.
const WRITE_MEMBERSHIP = `
  insert into core_memberships (org_id, user_id, role, created_at, ended_at) values (?, ?, ?, ?, null)
  on conflict (org_id, user_id) do update set
    role = case when ended_at is null then role else excluded.role end,
    ended_at = null,
    revived_at = case when ended_at is null then revived_at else ? end
  returning org_id, user_id, role, created_at, ended_at`;

const READ_SUBJECT = `
  select o.ended_at is null as org_live, m.role as role
  from core_orgs o
  left join core_memberships m
    on m.org_id = o.id and m.user_id = ? and m.ended_at is null and o.ended_at is null
  where o.id = ?`;

/** Tenancy over the embedded store; `org_id` in each statement is its only tenant fence. */
export class SqliteTenancyStorage implements TenancyStorage {
  readonly #db: SqliteDatabase;
  readonly #sessions: SqliteSessions;

  constructor(db: SqliteDatabase) {
    this.#db = db;
    this.#sessions = new SqliteSessions(db);
  }

  createOrg(org: Org): Promise<boolean> {
    return this.#db.write((session) =>
      session.run(
        "insert into core_orgs (id, name, created_at, ended_at) values (?, ?, ?, ?) on conflict (id) do nothing",
        org.id,
        org.name,
        org.createdAt.getTime(),
        org.endedAt?.getTime() ?? null,
      ) > 0
    );
  }

  readOrg(orgId: string): Promise<Org | null> {
    return this.#db.read((session) => {
      const row = session.get(READ_ORG, orgId);
      return row === undefined ? null : orgOf(row);
    });
  }

  endOrg(orgId: string): Promise<boolean> {
    return this.#db.write((session) =>
      session.run("update core_orgs set ended_at = coalesce(ended_at, ?) where id = ?", session.nowMs, orgId) > 0
    );
  }

  createUser(user: User): Promise<boolean> {
    return this.#db.write((session) =>
      session.run(
        "insert into core_users (id, name, created_at) values (?, ?, ?) on conflict (id) do nothing",
        user.id,
        user.name,
        user.createdAt.getTime(),
      ) > 0
    );
  }

  readUser(userId: string): Promise<User | null> {
    return this.#db.read((session) => {
      const row = session.get("select id, name, created_at from core_users where id = ?", userId);
      if (row === undefined) return null;
      return { id: String(row.id), name: String(row.name), createdAt: new Date(Number(row.created_at)) };
    });
  }

  writeMembership(membership: Membership): Promise<Membership> {
    const { orgId, userId, role, createdAt } = membership;
    return this.#db.write((session) => {
      const org = session.get(READ_ORG, orgId);
      if (org === undefined || org.ended_at !== null) {
        throw new NotFoundError(`Cannot add user ${userId} to org ${orgId}: there is no such org, or it has ended`);
      }
      if (session.get("select id from core_users where id = ?", userId) === undefined) {
        throw new NotFoundError(`Cannot add user ${userId} to org ${orgId}: there is no such user`);
      }
      const row = session.get(WRITE_MEMBERSHIP, orgId, userId, role, createdAt.getTime(), session.nowMs);
      return row === undefined ? membership : membershipOf(row);
    });
  }

  endMembership(orgId: string, userId: string): Promise<boolean> {
    return this.#db.write((session) =>
      session.run(
        "update core_memberships set ended_at = ? where org_id = ? and user_id = ? and ended_at is null",
        session.nowMs,
        orgId,
        userId,
      ) > 0
    );
  }

  readSubjects(pairs: readonly { orgId: string; userId: string }[]): Promise<SubjectState[]> {
    return this.#db.read((session) =>
      pairs.map(({ orgId, userId }) => {
        const row = session.get(READ_SUBJECT, userId, orgId);
        const role = (row?.role ?? null) as Role | null;
        return { orgId, userId, orgLive: row?.org_live === 1, memberLive: role !== null, role };
      })
    );
  }

  liveOrgIds(afterOrgId: string | null, limit: number): Promise<string[]> {
    return this.#db.read((session) =>
      session.all(
        "select id from core_orgs where id > ? and ended_at is null order by id limit ?",
        afterOrgId ?? "",
        limit,
      ).map((row) => String(row.id))
    );
  }

  createSession(orgId: string, session: SessionInsert): Promise<Session | null> {
    return this.#sessions.createSession(orgId, session);
  }

  touchSession(orgId: string, digest: string, idleMs: number): Promise<SecretHolder | null> {
    return this.#sessions.touchSession(orgId, digest, idleMs);
  }

  endSession(orgId: string, sessionId: string, userId: string | null): Promise<boolean> {
    return this.#sessions.endSession(orgId, sessionId, userId);
  }

  createSocketTicket(orgId: string, ticket: TicketInsert): Promise<boolean> {
    return this.#sessions.createSocketTicket(orgId, ticket);
  }

  redeemSocketTicket(orgId: string, digest: string): Promise<SecretHolder | null> {
    return this.#sessions.redeemSocketTicket(orgId, digest);
  }

  /** Tenant-less: what is over is over in all orgs. */
  purgeSessions(idleMs: number, limit: number): Promise<number> {
    return this.#sessions.purgeSessions(idleMs, limit);
  }

  /** Tenant-less: what is over is over in all orgs. */
  purgeSocketTickets(limit: number): Promise<number> {
    return this.#sessions.purgeSocketTickets(limit);
  }
}

function dateOrNull(ms: string | number | null | undefined): Date | null {
  return ms === null || ms === undefined ? null : new Date(Number(ms));
}

function orgOf(row: SqliteRow): Org {
  return {
    id: String(row.id),
    name: String(row.name),
    createdAt: new Date(Number(row.created_at)),
    endedAt: dateOrNull(row.ended_at),
  };
}

function membershipOf(row: SqliteRow): Membership {
  return {
    orgId: String(row.org_id),
    userId: String(row.user_id),
    role: row.role as Role,
    createdAt: new Date(Number(row.created_at)),
    endedAt: dateOrNull(row.ended_at),
  };
}
