-- Shipments that park while their endpoint is down, shipments that are deleted, and how each endpoint fares.
-- All columns are nullable without a default, so that adding them touches no row.

alter table shipments.shipments
  -- The item that carries the notification now; none means the first one, notification_id.
  add column item_id uuid,
  add column parked_reason text check (length(parked_reason) between 1 and 500),
  add column resume_at timestamptz,
  add column park_cursor jsonb,
  -- The endpoint it waits for; none when it waits for its time alone.
  add column parked_host text,
  add column deleted_at timestamptz;
-- Not validated: there is no row yet that could break it, and the table need not be read under its lock.
alter table shipments.shipments add constraint shipments_parking check
  ((parked_reason is null) = (resume_at is null) and (parked_reason is null or deleted_at is null)) not valid;
create index shipments_parked on shipments.shipments (org_id, resume_at) where parked_reason is not null;
create index shipments_deleted on shipments.shipments (org_id, deleted_at) where deleted_at is not null;
-- The purge of deleted shipments.
grant delete on shipments.shipments to laneway_runtime;

-- Consecutive failures of a webhook host within an org. No row: it answered last time, or was never asked.
create table shipments.endpoints (
  org_id uuid not null,
  host text not null check (length(host) between 1 and 2000),
  failures int not null check (failures >= 1),
  -- Since when it counts as down; none while its failures are within the bound.
  down_since timestamptz,
  -- From when one shipment may try it again.
  probe_at timestamptz,
  updated_at timestamptz not null,
  primary key (org_id, host),
  check ((down_since is null) = (probe_at is null))
);
alter table shipments.endpoints enable row level security;
alter table shipments.endpoints force row level security;
create policy endpoints_tenant on shipments.endpoints to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy endpoints_system on shipments.endpoints to laneway_system using (true) with check (true);
grant select, insert, update, delete on shipments.endpoints to laneway_runtime;
