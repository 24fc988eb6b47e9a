drop table shipments.endpoints;
revoke delete on shipments.shipments from laneway_runtime;
alter table shipments.shipments
  drop column deleted_at,
  drop column parked_host,
  drop column park_cursor,
  drop column resume_at,
  drop column parked_reason,
  drop column item_id;
