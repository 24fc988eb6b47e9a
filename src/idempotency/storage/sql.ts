/**
 * The Postgres statements of markers, named as the methods of `IdempotencyStorage`.
 *
 * @module
 */
import { TENANT_SQL } from "../../db/tenant_sql.ts";

/** The statements, on a given expression of database time. */
export interface IdempotencySql {
  readonly begin: string;
  readonly readMarker: string;
  readonly finish: string;
  readonly release: string;
  readonly purgeMarkers: string;
}

/** Builds the statements; `now` is the SQL expression of database time. */
export function idempotencySql(now: string): IdempotencySql {
  const columns = `m.state, m.attempt_token, m.request_digest, m.record_id, m.outcome,
    greatest(extract(epoch from m.lease_expires_at - ${now}) * 1000, 0)::float8 as lease_left_ms`;
  const mine = `m.org_id = $1::uuid and m.org_id = ${TENANT_SQL} and m.key = $2`;
  return {
    // The conditions stand in the conflict's own clause: two attempts at once are decided by the row's lock.
    begin: `
      insert into core.idempotency_markers as m (org_id, key, state, attempt_token, request_digest, record_id,
        lease_expires_at, created_at, updated_at)
      select $1::uuid, $2, 'pending', $3::uuid, $4, $5::uuid, ${now} + $6::float8 * interval '1 millisecond',
        ${now}, ${now}
      where $1::uuid = ${TENANT_SQL}
      on conflict (org_id, key) do update set state = 'pending', attempt_token = excluded.attempt_token,
        lease_expires_at = excluded.lease_expires_at, updated_at = excluded.updated_at
      where m.request_digest = excluded.request_digest and (
        m.state = 'released'
        or (m.state = 'pending' and (m.lease_expires_at <= ${now} or m.attempt_token = excluded.attempt_token))
      )
      returning ${columns}`,

    readMarker: `select ${columns} from core.idempotency_markers m where ${mine}`,

    finish: `
      update core.idempotency_markers m set state = 'finished', updated_at = ${now},
        outcome = case when m.state = 'finished' then m.outcome else $4::text::jsonb end
      where ${mine} and m.attempt_token = $3::uuid and m.state in ('pending', 'finished')
      returning m.key`,

    release: `
      update core.idempotency_markers m set state = 'released', updated_at = ${now}
      where ${mine} and m.attempt_token = $3::uuid and m.state in ('pending', 'released')
      returning m.key`,

    // SKIP LOCKED: two purges at once take different rows.
    purgeMarkers: `
      with old as materialized (
        select ctid as place, 1 as few from core.idempotency_markers
        where updated_at < ${now} - $1::float8 * interval '1 millisecond' and lease_expires_at <= ${now}
        order by updated_at limit $2::int for update skip locked
      )
      delete from core.idempotency_markers m using old where m.ctid = old.place and old.few = 1
      returning m.key`,
  };
}
