-- The queue area: work items, the completed ones, the keys that outlive both, and the fleet's sweep steps.
create schema if not exists queue;
grant usage on schema queue to laneway_runtime, laneway_system, laneway_host;

-- What has to be done: items that wait, are claimed, or are dead letters. What is done lies in work_history, so this table
-- stays small, and its rows are written in place. What a claim writes stands last: where the new version fits on the
-- row's own page (hence the fillfactor) the log then holds little more than these columns, whatever the payload. Checks
-- are evaluated at each write of a row, three times an item: only cheap ones.
create table queue.work_items (
  org_id            uuid        not null,
  id                uuid        not null,
  created_at        timestamptz not null,
  created_by        uuid        not null,
  request_id        uuid,
  target_id         uuid,
  available_at      timestamptz not null,
  max_attempts      integer     not null default 3 check (max_attempts between 1 and 1000),
  priority          smallint    not null default 10 check (priority >= 0),
  kind              text        collate "C" not null,
  lane              text        collate "C" not null default 'default',
  weight            text        collate "C" not null default 'light',
  host_preference   text        collate "C",
  idempotency_key   text        collate "C" not null,
  traceparent       text        collate "C",
  payload           jsonb       not null,
  last_error        text,
  note              text,
  updated_at        timestamptz not null,
  updated_by        uuid        not null,
  claims            bigint      not null default 0,
  attempts          integer     not null default 0 check (attempts >= 0),
  expiries          integer     not null default 0,
  -- True once the item is due and so in the claim's index; false for a start in the future, until promoted.
  ready             boolean     not null default false,
  status            text        collate "C" not null default 'queued' check (status in ('queued', 'claimed', 'failed')),
  claim_token       uuid,
  lease_expires_at  timestamptz,
  claimed_by        text        collate "C",
  audit_id          uuid,
  primary key (org_id, id),
  check ((status = 'claimed') = (lease_expires_at is not null)),
  check (not ready or status = 'queued')
) with (
  -- The table churns: every item is written at least three times. Vacuum by count, not by share.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  fillfactor = 50
);

-- Tenant-less, named exceptions to "indexes lead with org_id": each serves one statement that spans orgs.
-- claim: due items alone, in claim order; future, claimed and failed rows and absent kinds cost it nothing.
create index work_items_claim on queue.work_items (lane, kind, priority, available_at, id) where ready;
-- promote: items with a start in the future, by when they become due.
create index work_items_future on queue.work_items (available_at) where status = 'queued' and not ready;
-- requeueStale, orgsWithStale: claims by when their lease passes.
create index work_items_lease on queue.work_items (lease_expires_at, org_id) where status = 'claimed';
-- purgeItems and the dead-letter gauge.
create index work_items_failed on queue.work_items (updated_at) where status = 'failed';
-- readUnaudited: dead letters whose audit entry is not written yet; almost always empty.
create index work_items_unaudited on queue.work_items (updated_at) where audit_id is not null;

-- Completed items, moved here by the statement that completes them; written once, read by key, purged by age.
create table queue.work_history (
  org_id            uuid        not null,
  id                uuid        not null,
  created_at        timestamptz not null,
  created_by        uuid        not null,
  request_id        uuid,
  target_id         uuid,
  available_at      timestamptz not null,
  finished_at       timestamptz not null,
  claim_token       uuid        not null,
  claims            bigint      not null,
  attempts          integer     not null,
  max_attempts      integer     not null,
  priority          smallint    not null,
  kind              text        collate "C" not null,
  lane              text        collate "C" not null,
  weight            text        collate "C" not null,
  host_preference   text        collate "C",
  idempotency_key   text        collate "C" not null,
  traceparent       text        collate "C",
  payload           jsonb       not null,
  last_error        text,
  note              text,
  primary key (org_id, id)
);
-- purgeItems.
create index work_history_age on queue.work_history (finished_at);

create table queue.work_keys (
  org_id      uuid        not null,
  key         text        collate "C" not null check (length(key) between 1 and 200),
  item_id     uuid        not null,
  created_at  timestamptz not null,
  primary key (org_id, key)
);
-- purgeKeys (tenant-less): keys by age.
create index work_keys_age on queue.work_keys (created_at);

create table queue.sweep_steps (
  step         text        primary key,
  last_run_at  timestamptz not null
);

alter table queue.work_items enable row level security;
alter table queue.work_items force row level security;
create policy work_items_tenant on queue.work_items for all to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy work_items_system on queue.work_items for all to laneway_system using (true) with check (true);

alter table queue.work_history enable row level security;
alter table queue.work_history force row level security;
create policy work_history_tenant on queue.work_history for all to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy work_history_system on queue.work_history for all to laneway_system using (true) with check (true);

alter table queue.work_keys enable row level security;
alter table queue.work_keys force row level security;
create policy work_keys_tenant on queue.work_keys for all to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy work_keys_system on queue.work_keys for all to laneway_system using (true) with check (true);

grant select, insert, update on queue.work_items to laneway_runtime;
grant select on queue.work_history to laneway_runtime;
grant select, insert on queue.work_keys to laneway_runtime;
grant select, insert, update, delete on queue.work_items, queue.work_history, queue.work_keys to laneway_system;

-- Scope system: the fleet's own, no tenant's.
grant select, insert, update on queue.sweep_steps to laneway_system;
