/**
 * The Postgres statements of tenancy, named as the methods of `TenancyStorage`.
 *
 * @module
 */
import { TENANT_SQL } from "../../db/tenant_sql.ts";

/** The statements, on a given expression of database time. */
export interface TenancySql extends SessionSql {
  readonly createOrg: string;
  readonly readOrg: string;
  readonly endOrg: string;
  readonly createUser: string;
  readonly readUser: string;
  readonly writeMembership: string;
  readonly endMembership: string;
  readonly readSubjects: string;
  readonly liveOrgIds: string;
}

/** The statements of sessions and tickets. */
interface SessionSql {
  readonly createSession: string;
  readonly touchSession: string;
  readonly endSession: string;
  readonly createSocketTicket: string;
  readonly redeemSocketTicket: string;
  readonly purgeSessions: string;
  readonly purgeSocketTickets: string;
}

/** Builds the statements; `now` is the SQL expression of database time. */
export function tenancySql(now: string): TenancySql {
  return {
    ...sessionSql(now),
    createOrg: `
      insert into core.orgs (id, name, created_at, ended_at)
      values ($1::uuid, $2::text, $3::text::timestamptz, $4::text::timestamptz)
      on conflict (id) do nothing
      returning id`,

    readOrg: `
      select id, name, created_at, ended_at from core.orgs where id = $1::uuid and id = ${TENANT_SQL}`,

    // Keeps the first ending's time: ending twice is one ending.
    endOrg: `
      update core.orgs set ended_at = coalesce(ended_at, ${now}) where id = $1::uuid returning id`,

    createUser: `
      insert into core.users (id, name, created_at)
      values ($1::uuid, $2::text, $3::text::timestamptz)
      on conflict (id) do nothing
      returning id`,

    readUser: `
      select id, name, created_at from core.users where id = $1::uuid`,

    // Selecting from orgs refuses an org that is absent or has ended; an absent user violates its foreign key. A live
    // row is written over with itself rather than skipped, as a skipped row is not returned.
    writeMembership: `
      insert into core.memberships as m (org_id, user_id, role, created_at, ended_at)
      select o.id, $2::uuid, $3::text, $4::text::timestamptz, null
      from core.orgs o
      where o.id = $1::uuid and o.id = ${TENANT_SQL} and o.ended_at is null
      on conflict (org_id, user_id) do update set
        role = case when m.ended_at is null then m.role else excluded.role end,
        ended_at = null,
        revived_at = case when m.ended_at is null then m.revived_at else ${now} end
      returning org_id, user_id, role, created_at, ended_at`,

    endMembership: `
      update core.memberships set ended_at = ${now}
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and user_id = $2::uuid and ended_at is null
      returning user_id`,

    // One row a pair, whatever is absent. `ord` travels along, as a join gives no order.
    readSubjects: `
      select r.ord,
        (o.id is not null and o.ended_at is null) as org_live,
        case when o.ended_at is null then m.role end as role
      from jsonb_to_recordset($1::text::jsonb) as r (ord int, org_id uuid, user_id uuid)
      left join core.orgs o on o.id = r.org_id
      left join core.memberships m on m.org_id = o.id and m.user_id = r.user_id and m.ended_at is null
      order by r.ord`,

    // The empty uuid sorts before every org and is none; an `or $1 is null` would cost the index range.
    liveOrgIds: `
      select id from core.orgs where id > $1::uuid and ended_at is null order by id limit $2::int`,
  };
}

const SESSION = "s.org_id, s.id, s.user_id, s.created_at, s.last_used_at, s.expires_at, s.ended_at";

/** Sessions and tickets. */
function sessionSql(now: string): SessionSql {
  const after = (param: number) => `${now} + $${param}::float8 * interval '1 millisecond'`;
  const before = (param: number) => `${now} - $${param}::float8 * interval '1 millisecond'`;
  const member = `
      from core.memberships m join core.orgs o on o.id = m.org_id
      where m.org_id = $1::uuid and m.org_id = ${TENANT_SQL} and m.user_id = $2::uuid and m.ended_at is null
        and o.ended_at is null`;
  // What was begun before a membership came to life again stays dead.
  const ofLiveMember = (row: string) => `
        and m.org_id = ${row}.org_id and m.user_id = ${row}.user_id and m.ended_at is null
        and (m.revived_at is null or ${row}.created_at >= m.revived_at)
        and o.id = ${row}.org_id and o.ended_at is null
      returning ${row}.user_id, m.role`;
  return {
    // The second insert of one session writes the row over with itself, as a skipped row is not returned.
    createSession: `
      insert into core.sessions as s (org_id, id, user_id, secret_digest, created_at, last_used_at, expires_at)
      select m.org_id, $3::uuid, m.user_id, $4, ${now}, ${now}, ${after(5)} ${member}
      on conflict (org_id, id) do update set last_used_at = s.last_used_at
      where s.secret_digest = excluded.secret_digest and s.user_id = excluded.user_id
      returning ${SESSION}`,

    touchSession: `
      update core.sessions s set last_used_at = greatest(s.last_used_at, ${now})
      from core.memberships m, core.orgs o
      where s.org_id = $1::uuid and s.org_id = ${TENANT_SQL} and s.secret_digest = $2
        and s.ended_at is null and s.expires_at > ${now} and s.last_used_at > ${before(3)} ${ofLiveMember("s")}`,

    endSession: `
      update core.sessions s set ended_at = coalesce(s.ended_at, ${now})
      where s.org_id = $1::uuid and s.org_id = ${TENANT_SQL} and s.id = $2::uuid
        and ($3::uuid is null or s.user_id = $3::uuid)
      returning s.id`,

    createSocketTicket: `
      insert into core.socket_tickets as t (org_id, user_id, secret_digest, created_at, expires_at)
      select m.org_id, m.user_id, $3, ${now}, ${after(4)} ${member}
      on conflict (org_id, secret_digest) do update set expires_at = t.expires_at where t.user_id = excluded.user_id
      returning t.user_id`,

    // Of callers at once, the second waits for the first's row lock and then finds it redeemed.
    redeemSocketTicket: `
      update core.socket_tickets t set redeemed_at = ${now}
      from core.memberships m, core.orgs o
      where t.org_id = $1::uuid and t.org_id = ${TENANT_SQL} and t.secret_digest = $2
        and t.redeemed_at is null and t.expires_at > ${now} ${ofLiveMember("t")}`,

    purgeSessions: purge(
      "core.sessions",
      `ended_at is not null or expires_at <= ${now} or last_used_at <= ${before(2)}`,
    ),
    purgeSocketTickets: purge("core.socket_tickets", `redeemed_at is not null or expires_at <= ${now}`),
  };
}

// SKIP LOCKED: two purges at once take different rows. Each condition has its index. `few` keeps the planner from
// reading the whole table for the join.
function purge(table: string, isOver: string): string {
  return `
      with gone as materialized (
        select ctid as place, 1 as few from ${table} where ${isOver} limit $1::int for update skip locked
      )
      delete from ${table} t using gone where t.ctid = gone.place and gone.few = 1
      returning t.org_id`;
}
