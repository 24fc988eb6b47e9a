-- The example record: a shipment, versioned, with the item that notifies of it.
-- The login that migrates owns the table; FORCE holds it to the policies too.

create schema if not exists shipments;
grant usage on schema shipments to laneway_runtime, laneway_system;

-- No foreign key to core.orgs: nothing of a worker's own may lock or depend on the house's tables.
create table shipments.shipments (
  org_id uuid not null,
  id uuid not null,
  version int not null check (version >= 1),
  carrier text not null check (length(carrier) between 1 and 60),
  tracking_number text not null check (length(tracking_number) between 4 and 40),
  recipient_name text not null check (length(recipient_name) between 1 and 200),
  destination text not null check (length(destination) between 1 and 200),
  webhook_url text not null check (length(webhook_url) between 1 and 2000),
  status text not null check (status in ('created', 'notified')),
  notified_at timestamptz,
  -- The id of its NOTIFY_SHIPMENT item, and so the webhook-id its receiver sees.
  notification_id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by uuid not null,
  updated_by uuid not null,
  primary key (org_id, id),
  check ((status = 'notified') = (notified_at is not null))
);
alter table shipments.shipments enable row level security;
alter table shipments.shipments force row level security;
create policy shipments_tenant on shipments.shipments to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy shipments_system on shipments.shipments to laneway_system using (true) with check (true);
grant select, insert, update on shipments.shipments to laneway_runtime;
grant select on shipments.shipments to laneway_system;
