/**
 * The Postgres statements of endpoints, named as the methods of `EndpointStorage`.
 *
 * @module
 */
import { TENANT_SQL } from "../../../../mod.ts";
import { RESUME_PULL, RESUME_SPACING_MS } from "../rules.ts";

/** The statements, on a given expression of database time. */
export interface EndpointSql {
  readonly readEndpoint: string;
  readonly takeProbe: string;
  readonly failed: string;
  readonly answered: string;
}

const COLUMNS = "host, failures, probe_at";

/** Builds the statements; `now` is the SQL expression of database time. */
export function endpointSql(now: string): EndpointSql {
  const mine = `org_id = $1::uuid and org_id = ${TENANT_SQL} and host = $2`;
  const down = "e.down_since is not null";
  return {
    readEndpoint: `select ${COLUMNS} from shipments.endpoints where ${mine}`,

    takeProbe: `
      update shipments.endpoints set probe_at = ${now} + $3::float8 * interval '1 millisecond', updated_at = ${now}
      where ${mine} and down_since is not null and probe_at <= ${now}
      returning host`,

    // Many at once fail as one goes down: only the bound's count moves it, then only probes do, or a busy minute would
    // double the wait to its cap.
    failed: `
      insert into shipments.endpoints as e (org_id, host, failures, down_since, probe_at, updated_at)
      select $1::uuid, $2, 1, case when $3::int <= 1 then ${now} end,
        case when $3::int <= 1 then ${now} + least($4::float8, $5::float8) * interval '1 millisecond' end, ${now}
      where $1::uuid = ${TENANT_SQL}
      on conflict (org_id, host) do update set
        failures = case when ${down} and not $6::boolean then e.failures else least(e.failures, 1000000) + 1 end,
        down_since = case when ${down} then e.down_since when e.failures + 1 >= $3::int then ${now} end,
        probe_at = case
          when ${down} and not $6::boolean then e.probe_at
          when ${down} or e.failures + 1 >= $3::int then ${now} + interval '1 millisecond' *
            least($4::float8 * power(2, least(greatest(e.failures + 1 - $3::int, 0), 30)), $5::float8)
        end,
        updated_at = ${now}
      returning ${COLUMNS}`,

    answered: `with ${answeredCtes({ org: "$1", host: "$2", now })} select 1`,
  };
}

/**
 * The CTEs `answered` and `pulled`, for a statement of a core write that shows that an endpoint answered.
 *
 * `pulled` reads `answered`, so that of answers at once the one that removes the row does the pulling. Rows that somebody
 * holds are left out: they are being resumed, or will be at their own time.
 *
 * @param parts.onlyIf SQL that must hold. Default `true`.
 */
export function answeredCtes(parts: { org: string; host: string; now: string; onlyIf?: string }): string {
  const { org, host, now, onlyIf = "true" } = parts;
  return `answered as (
        delete from shipments.endpoints
        where org_id = ${org}::uuid and org_id = ${TENANT_SQL} and host = ${host}::text and (${onlyIf})
        returning down_since
      ), pulled as (
        update shipments.shipments s set resume_at = least(s.resume_at,
          ${now} + (p.place - 1) * ${RESUME_SPACING_MS} * interval '1 millisecond')
        from (
          select c.id, row_number() over (order by c.resume_at, c.id) as place from (
            select id, resume_at from shipments.shipments
            where org_id = ${org}::uuid and org_id = ${TENANT_SQL} and parked_reason is not null
              and parked_host = ${host}::text and exists (select from answered where down_since is not null)
            order by resume_at, id limit ${RESUME_PULL} for update skip locked
          ) c
        ) p
        where s.org_id = ${org}::uuid and s.id = p.id
      )`;
}
