/**
 * The Postgres statements of the activity area, named as the methods of `AuditStorage`.
 *
 * @module
 */
import { TENANT_SQL } from "../../db/tenant_sql.ts";

/** The statements, on a given expression of database time. */
export interface AuditSql {
  readonly createEntries: string;
  readonly appendEvent: string;
  readonly readEventSeq: string;
  readonly readEntries: string;
  readonly readEvents: string;
}

/** Builds the statements; `now` is the SQL expression of database time. */
export function auditSql(now: string): AuditSql {
  return {
    // Rows go in in key order, so that two batches with the same entries wait for each other instead of deadlocking.
    // A JSON null in a record set reads as SQL NULL; the detail may be null and the column may not.
    createEntries: `
      insert into activity.audit_entries
        (org_id, id, actor_id, action, subject_type, subject_id, request_id, app, detail, created_at)
      select r.org_id, r.id, r.actor_id, r.action, r.subject_type, r.subject_id, r.request_id, r.app,
        coalesce(r.detail, 'null'::jsonb), r.created_at
      from jsonb_to_recordset($1::text::jsonb) as r (org_id uuid, id uuid, actor_id uuid, action text,
        subject_type text, subject_id text, request_id uuid, app text, detail jsonb, created_at timestamptz)
      order by r.org_id, r.id
      on conflict (org_id, id) do nothing`,

    // The cursor's row lock puts appends of one org in a line. A repeated event is seen first and bumps nothing; one
    // that races past that look violates the events' key, and the violation takes the bump back with it. An ON CONFLICT
    // on the events would keep the bump and leave a gap.
    appendEvent: `
      with existing as (
        select seq from activity.events where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid
      ), bumped as (
        insert into activity.event_cursors as c (org_id, last_seq)
        select $1::uuid, 1
        where $1::uuid = ${TENANT_SQL} and not exists (select from existing)
        on conflict (org_id) do update set last_seq = c.last_seq + 1
        returning last_seq
      ), appended as (
        insert into activity.events (org_id, id, seq, kind, actor_id, request_id, payload, created_at)
        select $1::uuid, $2::uuid, bumped.last_seq, $3::text, $4::uuid, $5::uuid, $6::text::jsonb, ${now} from bumped
        returning seq
      )
      select seq, true as inserted from appended
      union all
      select seq, false from existing`,

    readEventSeq: `
      select seq from activity.events where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid`,

    readEntries: `
      select org_id, id, actor_id, action, subject_type, subject_id, request_id, app, detail, created_at
      from activity.audit_entries
      where org_id = $1::uuid and org_id = ${TENANT_SQL}
      order by created_at desc, id desc
      limit $2::int`,

    readEvents: `
      select org_id, id, seq, kind, actor_id, request_id, payload, created_at
      from activity.events
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and seq > $2::bigint
      order by seq
      limit $3::int`,
  };
}
