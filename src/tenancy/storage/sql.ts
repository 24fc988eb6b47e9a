/**
 * The Postgres statements of tenancy, named as the methods of `TenancyStorage`.
 *
 * @module
 */
import { TENANT_SQL } from "../../db/tenant_sql.ts";

/** The statements, on a given expression of database time. */
export interface TenancySql {
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

/** Builds the statements; `now` is the SQL expression of database time. */
export function tenancySql(now: string): TenancySql {
  return {
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
        ended_at = null
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
