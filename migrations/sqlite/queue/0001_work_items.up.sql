-- The queue area on SQLite: times are epoch milliseconds, ids and JSON are text, booleans 0 and 1.
create table queue_work_items (
  org_id            text    not null,
  id                text    not null,
  created_at        integer not null,
  updated_at        integer not null,
  created_by        text    not null,
  updated_by        text    not null,
  kind              text    not null,
  target_id         text,
  idempotency_key   text    not null check (length(idempotency_key) between 1 and 200),
  payload           text    not null,
  lane              text    not null,
  -- An IN of more than two would build its list as a table at each statement: 2 µs a write.
  status            text    not null check (status = 'queued' or status = 'claimed' or status = 'done' or status = 'failed'),
  ready             integer not null,
  priority          integer not null check (priority >= 0),
  weight            text    not null,
  host_preference   text,
  available_at      integer not null,
  claimed_by        text,
  claim_token       text,
  lease_expires_at  integer,
  attempts          integer not null default 0 check (attempts >= 0),
  max_attempts      integer not null check (max_attempts between 1 and 1000),
  claims            integer not null default 0,
  expiries          integer not null default 0,
  last_error        text,
  note              text,
  audit_id          text,
  request_id        text,
  traceparent       text,
  primary key (org_id, id)
) strict;
create index queue_work_items_claim on queue_work_items (lane, kind, priority, available_at, id)
  where status = 'queued' and ready = 1;
create index queue_work_items_future on queue_work_items (available_at) where status = 'queued' and ready = 0;
create index queue_work_items_lease on queue_work_items (lease_expires_at, org_id) where status = 'claimed';
create index queue_work_items_done on queue_work_items (updated_at) where status = 'done';
create index queue_work_items_failed on queue_work_items (updated_at) where status = 'failed';
create index queue_work_items_unaudited on queue_work_items (updated_at) where audit_id is not null;
create table queue_work_keys (
  org_id      text    not null,
  key         text    not null,
  item_id     text    not null,
  created_at  integer not null,
  primary key (org_id, key)
) strict, without rowid;
create index queue_work_keys_age on queue_work_keys (created_at);
create table queue_sweep_steps (
  step         text    primary key,
  last_run_at  integer not null
) strict, without rowid;
