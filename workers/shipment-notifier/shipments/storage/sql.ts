/**
 * The Postgres statements of shipments, named as the methods of `ShipmentStorage`.
 *
 * @module
 */
import { outboxInsertCte, TENANT_SQL } from "../../../../mod.ts";
import { answeredCtes } from "../../endpoints/storage/sql.ts";

/** The statements, on a given expression of database time. */
export interface ShipmentSql {
  readonly createShipment: string;
  readonly readShipment: string;
  readonly markNotified: string;
  readonly park: string;
  readonly readDueParked: string;
  readonly resumeParked: string;
  readonly orgsWithParked: string;
  readonly countParked: string;
  readonly deleteShipment: string;
  readonly wasDeleted: string;
  readonly orgsWithDeleted: string;
  readonly purgeDeletedShipments: string;
}

const INSERTED = `id, version, carrier, tracking_number, recipient_name, destination, webhook_url, status, notified_at,
  notification_id, created_at, updated_at, created_by, updated_by`;
const COLUMNS = `${INSERTED}, item_id, parked_reason, resume_at, park_cursor`;
const NOT_PARKED = "parked_reason = null, resume_at = null, parked_host = null";

/** Builds the statements; `now` is the SQL expression of database time. */
export function shipmentSql(now: string): ShipmentSql {
  const outbox = (param: number) => outboxInsertCte(param, { onlyIf: "exists (select from written)", nowSql: now });
  // What every compare-and-set of one shipment asks for: org $1, id $2, version $3; signed by $4.
  const asExpected = `org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid and version = $3::int
          and deleted_at is null`;
  const moved = `version = version + 1, updated_at = ${now}, updated_by = $4::uuid`;
  return {
    // One statement: a shipment without its outbox rows would never be notified, rows without it would be of nothing.
    // Meeting its id writes neither, as `written` is empty then.
    createShipment: `
      with written as (
        insert into shipments.shipments (org_id, ${INSERTED})
        select r.org_id, r.id, 1, r.carrier, r.tracking_number, r.recipient_name, r.destination, r.webhook_url,
          'created', null, r.notification_id, ${now}, ${now}, r.created_by, r.created_by
        from jsonb_to_record($1::text::jsonb) as r (org_id uuid, id uuid, carrier text, tracking_number text,
          recipient_name text, destination text, webhook_url text, notification_id uuid, created_by uuid)
        where r.org_id = ${TENANT_SQL}
        on conflict (org_id, id) do nothing
        returning ${COLUMNS}
      ), ${outbox(2)}
      select * from written`,

    readShipment: `
      select ${COLUMNS} from shipments.shipments
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid and deleted_at is null`,

    // The compare-and-set: of two writers that read the same version one wins, and only its event is written. A mark
    // shows that its endpoint is up: told in the same statement, a success never costs one of its own.
    markNotified: `
      with written as (
        update shipments.shipments set status = 'notified', notified_at = ${now}, ${NOT_PARKED}, ${moved}
        where ${asExpected} and status = 'created'
        returning ${COLUMNS}
      ), ${answeredCtes({ org: "$1", host: "$6", now, onlyIf: "exists (select from written)" })}, ${outbox(5)}
      select * from written`,

    park: `
      with written as (
        update shipments.shipments set parked_reason = $6, resume_at = $7::text::timestamptz, parked_host = $8,
          park_cursor = coalesce($9::text::jsonb, park_cursor), ${moved}
        where ${asExpected} and status = 'created' and parked_reason is null
        returning ${COLUMNS}
      ), ${outbox(5)}
      select * from written`,

    ...sweepSql(now),

    deleteShipment: `
      with written as (
        update shipments.shipments set deleted_at = ${now}, ${NOT_PARKED}, ${moved}
        where ${asExpected}
        returning id
      ), ${outbox(5)}
      select * from written`,

    wasDeleted: `
      select id from shipments.shipments
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid and deleted_at is not null`,
  };
}

type SweepSql = Pick<
  ShipmentSql,
  "readDueParked" | "resumeParked" | "orgsWithParked" | "countParked" | "orgsWithDeleted" | "purgeDeletedShipments"
>;

/** What the sweep asks. */
function sweepSql(now: string): SweepSql {
  const before = (param: number) => `${now} - $${param}::float8 * interval '1 millisecond'`;
  const ofResumed = `coalesce(r.payload->>'id', r.payload->>'shipmentId')::uuid in
        (select id from written where parked_reason is null)`;
  return {
    readDueParked: `
      select ${COLUMNS}, parked_host, (
        select extract(epoch from e.probe_at - ${now}) * 1000 from shipments.endpoints e
        where e.org_id = s.org_id and e.host = s.parked_host and e.down_since is not null
      )::float8 as probe_in_ms
      from shipments.shipments s
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and parked_reason is not null and resume_at <= ${now}
      order by resume_at, id limit $2::int`,

    // Locked in id order and skipped where held: two sweeps at once resume different rows and wait for neither. An item's
    // id lands with its outbox row or not at all.
    resumeParked: `
      with picked as (
        select s.id, m.item_id, m.postpone_ms
        from jsonb_to_recordset($2::text::jsonb) as m (id uuid, version int, item_id uuid, postpone_ms float8)
        join shipments.shipments s on s.id = m.id and s.version = m.version
        where s.org_id = $1::uuid and s.org_id = ${TENANT_SQL} and s.parked_reason is not null
          and s.resume_at <= ${now}
        order by s.id for update of s skip locked
      ), written as (
        update shipments.shipments s set
          parked_reason = case when p.item_id is null then s.parked_reason end,
          parked_host = case when p.item_id is null then s.parked_host end,
          resume_at = case when p.item_id is null then ${now} + p.postpone_ms * interval '1 millisecond' end,
          item_id = coalesce(p.item_id, s.item_id),
          version = case when p.item_id is null then s.version else s.version + 1 end,
          updated_at = case when p.item_id is null then s.updated_at else ${now} end,
          updated_by = case when p.item_id is null then s.updated_by else '00000000-0000-0000-0000-000000000000' end
        from picked p where s.org_id = $1::uuid and s.id = p.id
        returning s.id, s.parked_reason
      ), ${outboxInsertCte(3, { onlyIf: ofResumed, nowSql: now })}
      select id from written where parked_reason is null`,

    // The empty uuid sorts before every org and is none.
    orgsWithParked: `
      select distinct org_id from shipments.shipments
      where org_id > $1::uuid and parked_reason is not null and resume_at <= ${now} order by org_id limit $2::int`,

    countParked: `select count(*)::int as parked from shipments.shipments where parked_reason is not null`,

    orgsWithDeleted: `
      select distinct org_id from shipments.shipments
      where org_id > $1::uuid and deleted_at is not null and deleted_at < ${before(3)} order by org_id limit $2::int`,

    purgeDeletedShipments: `
      with old as materialized (
        select id from shipments.shipments
        where org_id = $1::uuid and org_id = ${TENANT_SQL} and deleted_at is not null and deleted_at < ${before(2)}
        order by deleted_at, id limit $3::int for update skip locked
      )
      delete from shipments.shipments s using old where s.org_id = $1::uuid and s.id = old.id
      returning s.id`,
  };
}
