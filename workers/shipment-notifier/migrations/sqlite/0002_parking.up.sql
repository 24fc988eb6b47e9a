-- Shipments that park while their endpoint is down, shipments that are deleted, and how each endpoint fares.
alter table shipments_shipments add column item_id text;
alter table shipments_shipments add column parked_reason text check (length(parked_reason) between 1 and 500);
alter table shipments_shipments add column resume_at integer check ((parked_reason is null) = (resume_at is null));
alter table shipments_shipments add column park_cursor text;
alter table shipments_shipments add column parked_host text;
alter table shipments_shipments add column deleted_at integer check (parked_reason is null or deleted_at is null);
create index shipments_shipments_parked on shipments_shipments (org_id, resume_at) where parked_reason is not null;
create index shipments_shipments_deleted on shipments_shipments (org_id, deleted_at) where deleted_at is not null;

create table shipments_endpoints (
  org_id text not null,
  host text not null check (length(host) between 1 and 2000),
  failures integer not null check (failures >= 1),
  down_since integer,
  probe_at integer,
  updated_at integer not null,
  primary key (org_id, host),
  check ((down_since is null) = (probe_at is null))
) strict, without rowid;
