/**
 * Tenancy on Postgres.
 *
 * @module
 */
import type { Role } from "../../core/context.ts";
import { ConflictError, NotFoundError, UnavailableError } from "../../core/errors.ts";
import { EMPTY_UUID } from "../../core/ids.ts";
import type { Database, Row } from "../../db/database.ts";
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
import { type TenancySql, tenancySql } from "./sql.ts";

/** Tenancy over the core area's database. */
export class PostgresTenancyStorage implements TenancyStorage {
  readonly #database: Database;
  readonly #sql: TenancySql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = tenancySql(options.nowSql ?? "now()");
  }

  /** Tenant-less: the tenant does not exist yet. */
  async createOrg(org: Org): Promise<boolean> {
    const rows = await this.#database.system(this.#sql.createOrg, [
      org.id,
      org.name,
      org.createdAt.toISOString(),
      org.endedAt?.toISOString() ?? null,
    ]);
    return rows.length > 0;
  }

  async readOrg(orgId: string): Promise<Org | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.readOrg, [orgId]);
    return row === undefined ? null : orgOf(row);
  }

  /** Tenant-less: an ending is an act on the tenant, not within it; the runtime login may not write orgs at all. */
  async endOrg(orgId: string): Promise<boolean> {
    return (await this.#database.system(this.#sql.endOrg, [orgId])).length > 0;
  }

  /** Tenant-less: a user belongs to no org. */
  async createUser(user: User): Promise<boolean> {
    const params = [user.id, user.name, user.createdAt.toISOString()];
    return (await this.#database.system(this.#sql.createUser, params)).length > 0;
  }

  /** Tenant-less: a user belongs to no org. */
  async readUser(userId: string): Promise<User | null> {
    const [row] = await this.#database.system(this.#sql.readUser, [userId]);
    if (row === undefined) return null;
    return { id: row.id as string, name: row.name as string, createdAt: row.created_at as Date };
  }

  async writeMembership(membership: Membership): Promise<Membership> {
    const { orgId, userId, role, createdAt } = membership;
    const params = [orgId, userId, role, createdAt.toISOString()];
    let rows: Row[];
    try {
      rows = await this.#database.tenant(orgId, this.#sql.writeMembership, params);
    } catch (error) {
      // The only key this statement can violate is the user's; a deadlock is told the same way, so look.
      if (error instanceof ConflictError && await this.readUser(userId) === null) {
        throw new NotFoundError(`Cannot add user ${userId} to org ${orgId}: there is no such user`, { cause: error });
      }
      throw error;
    }
    const [row] = rows;
    if (row !== undefined) return membershipOf(row);
    const org = await this.readOrg(orgId);
    if (org === null || org.endedAt !== null) {
      throw new NotFoundError(`Cannot add user ${userId} to org ${orgId}: there is no such org, or it has ended`);
    }
    throw new UnavailableError(`Cannot tell whether user ${userId} was added to org ${orgId}: add it again`, "unknown");
  }

  async endMembership(orgId: string, userId: string): Promise<boolean> {
    return (await this.#database.tenant(orgId, this.#sql.endMembership, [orgId, userId])).length > 0;
  }

  /** Tenant-less: a claimed batch spans orgs, and what is asked is which of them still live. */
  async readSubjects(pairs: readonly { orgId: string; userId: string }[]): Promise<SubjectState[]> {
    if (pairs.length === 0) return [];
    const batch = pairs.map((pair, ord) => ({ ord, org_id: pair.orgId, user_id: pair.userId }));
    const rows = await this.#database.system(this.#sql.readSubjects, [JSON.stringify(batch)]);
    return rows.map((row) => {
      const pair = pairs[Number(row.ord)];
      const role = row.role as Role | null;
      return {
        orgId: pair?.orgId ?? "",
        userId: pair?.userId ?? "",
        orgLive: row.org_live === true,
        memberLive: role !== null,
        role,
      };
    });
  }

  /** Tenant-less: the sweep visits every org. */
  async liveOrgIds(afterOrgId: string | null, limit: number): Promise<string[]> {
    const rows = await this.#database.system(this.#sql.liveOrgIds, [afterOrgId ?? EMPTY_UUID, limit]);
    return rows.map((row) => row.id as string);
  }

  async createSession(orgId: string, session: SessionInsert): Promise<Session | null> {
    const { id, userId, digest, lifetimeMs } = session;
    const params = [orgId, userId, id, digest, lifetimeMs];
    const [row] = await this.#database.tenant(orgId, this.#sql.createSession, params);
    return row === undefined ? null : sessionOf(row);
  }

  async touchSession(orgId: string, digest: string, idleMs: number): Promise<SecretHolder | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.touchSession, [orgId, digest, idleMs]);
    return row === undefined ? null : holderOf(row);
  }

  async endSession(orgId: string, sessionId: string, userId: string | null): Promise<boolean> {
    return (await this.#database.tenant(orgId, this.#sql.endSession, [orgId, sessionId, userId])).length > 0;
  }

  async createSocketTicket(orgId: string, ticket: TicketInsert): Promise<boolean> {
    const params = [orgId, ticket.userId, ticket.digest, ticket.ttlMs];
    return (await this.#database.tenant(orgId, this.#sql.createSocketTicket, params)).length > 0;
  }

  async redeemSocketTicket(orgId: string, digest: string): Promise<SecretHolder | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.redeemSocketTicket, [orgId, digest]);
    return row === undefined ? null : holderOf(row);
  }

  /** Tenant-less: what is over is over in all orgs. */
  async purgeSessions(idleMs: number, limit: number): Promise<number> {
    return (await this.#database.system(this.#sql.purgeSessions, [limit, idleMs])).length;
  }

  /** Tenant-less: what is over is over in all orgs. */
  async purgeSocketTickets(limit: number): Promise<number> {
    return (await this.#database.system(this.#sql.purgeSocketTickets, [limit])).length;
  }
}

function holderOf(row: Row): SecretHolder {
  return { userId: row.user_id as string, role: row.role as Role };
}

function sessionOf(row: Row): Session {
  return {
    id: row.id as string,
    orgId: row.org_id as string,
    userId: row.user_id as string,
    createdAt: row.created_at as Date,
    lastUsedAt: row.last_used_at as Date,
    expiresAt: row.expires_at as Date,
    endedAt: row.ended_at as Date | null,
  };
}

function orgOf(row: Row): Org {
  return {
    id: row.id as string,
    name: row.name as string,
    createdAt: row.created_at as Date,
    endedAt: row.ended_at as Date | null,
  };
}

function membershipOf(row: Row): Membership {
  return {
    orgId: row.org_id as string,
    userId: row.user_id as string,
    role: row.role as Role,
    createdAt: row.created_at as Date,
    endedAt: row.ended_at as Date | null,
  };
}
