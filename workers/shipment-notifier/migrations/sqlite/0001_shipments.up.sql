-- The example record in the embedded store. Times are epoch milliseconds, ids are lower-case text.

create table shipments_shipments (
  org_id text not null,
  id text not null,
  version integer not null check (version >= 1),
  carrier text not null check (length(carrier) between 1 and 60),
  tracking_number text not null check (length(tracking_number) between 4 and 40),
  recipient_name text not null check (length(recipient_name) between 1 and 200),
  destination text not null check (length(destination) between 1 and 200),
  webhook_url text not null check (length(webhook_url) between 1 and 2000),
  status text not null check (status in ('created', 'notified')),
  notified_at integer,
  -- The id of its NOTIFY_SHIPMENT item, and so the webhook-id its receiver sees.
  notification_id text not null,
  created_at integer not null,
  updated_at integer not null,
  created_by text not null,
  updated_by text not null,
  primary key (org_id, id),
  check ((status = 'notified') = (notified_at is not null))
) strict;
