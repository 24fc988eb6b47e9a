drop table shipments_endpoints;
drop index shipments_shipments_deleted;
drop index shipments_shipments_parked;
alter table shipments_shipments drop column deleted_at;
alter table shipments_shipments drop column parked_host;
alter table shipments_shipments drop column park_cursor;
alter table shipments_shipments drop column resume_at;
alter table shipments_shipments drop column parked_reason;
alter table shipments_shipments drop column item_id;
