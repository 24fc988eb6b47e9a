/**
 * The Postgres statements of shipments, named as the methods of `ShipmentStorage`.
 *
 * @module
 */
import { outboxInsertCte, TENANT_SQL } from "../../../../mod.ts";

/** The statements, on a given expression of database time. */
export interface ShipmentSql {
  readonly createShipment: string;
  readonly readShipment: string;
  readonly markNotified: string;
}

const COLUMNS = `id, version, carrier, tracking_number, recipient_name, destination, webhook_url, status, notified_at,
  notification_id, created_at, updated_at, created_by, updated_by`;

/** Builds the statements; `now` is the SQL expression of database time. */
export function shipmentSql(now: string): ShipmentSql {
  const outbox = (param: number) => outboxInsertCte(param, { onlyIf: "exists (select from written)", nowSql: now });
  return {
    // One statement: a shipment without its outbox rows would never be notified, rows without it would be of nothing.
    // Meeting its id writes neither, as `written` is empty then.
    createShipment: `
      with written as (
        insert into shipments.shipments (org_id, ${COLUMNS})
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
      select ${COLUMNS} from shipments.shipments where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid`,

    // The compare-and-set: of two writers that read the same version one wins, and only its event is written.
    markNotified: `
      with written as (
        update shipments.shipments
        set status = 'notified', notified_at = ${now}, version = version + 1, updated_at = ${now}, updated_by = $4::uuid
        where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid and version = $3::int
          and status = 'created'
        returning ${COLUMNS}
      ), ${outbox(5)}
      select * from written`,
  };
}
