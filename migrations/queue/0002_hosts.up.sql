-- Hosts: machines that claim over REST (PostgREST, Supabase) with a key of their own. What a host may do is decided here, by
-- row policies and column grants, whatever its program asks for. Who it is says the claim "host" of its key, which the REST
-- server hands on as request.jwt.claims; a login that could set that itself must never be a member of laneway_host.

-- A row completed over REST waits here, as "done" and with its claim's token, for the sweep to move it into the history.
alter table queue.work_items drop constraint work_items_status_check;
alter table queue.work_items add constraint work_items_status_check
  check (status in ('queued', 'claimed', 'done', 'failed'));
-- The host that claimed it last, kept by its later writes, so that it sees what it wrote. Every other claim clears it: with it
-- a host could write a claim that is not its own. It stands last, among what a claim writes.
alter table queue.work_items add column host text collate "C";
-- archiveDone (tenant-less); almost always empty.
create index work_items_done on queue.work_items (updated_at) where status = 'done';

-- Scope system: a host serves orgs, none owns it. New rows are off, and allow nothing that is not named. Windows are JSON as
-- `HostWindow` in src/host/types.ts says; without any a host claims nothing.
create table queue.hosts (
  name               text        collate "C" primary key check (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  enabled            boolean     not null default false,
  org_ids            uuid[]      not null default '{}',
  kinds              text[]      collate "C" not null default '{}',
  weights            text[]      collate "C" not null default '{super-light,light}',
  priority_floor     smallint    not null default 5 check (priority_floor >= 0),
  lane               text        collate "C" not null default 'default',
  windows            jsonb       not null default '[]' check (jsonb_typeof(windows) = 'array'),
  last_heartbeat_at  timestamptz,
  current_workers    integer     not null default 0 check (current_workers >= 0),
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),
  note               text
);

-- One run of one item's command on a host.
create table queue.attempts (
  org_id            uuid        not null,
  item_id           uuid        not null,
  claim_token       uuid        not null,
  attempt           integer     not null,
  host              text        collate "C" not null,
  worker            text        collate "C" not null check (length(worker) <= 200),
  started_at        timestamptz not null,
  finished_at       timestamptz not null,
  duration_ms       float8      not null,
  outcome           text        collate "C" not null check (length(outcome) <= 40),
  reason            text        collate "C" check (length(reason) <= 40),
  exit_code         integer,
  signal            text        collate "C" check (length(signal) <= 40),
  stdout_tail       text        not null check (octet_length(stdout_tail) <= 16384),
  stderr_tail       text        not null check (octet_length(stderr_tail) <= 16384),
  stdout_cut_bytes  bigint      not null default 0,
  stderr_cut_bytes  bigint      not null default 0,
  created_at        timestamptz not null default now(),
  primary key (org_id, item_id, claim_token)
);
-- purgeAttempts (tenant-less).
create index attempts_age on queue.attempts (created_at);

alter table queue.attempts enable row level security;
alter table queue.attempts force row level security;
create policy attempts_tenant on queue.attempts for all to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy attempts_system on queue.attempts for all to laneway_system using (true) with check (true);

-- Not forced: whoever owns the table makes hosts and switches them on and off.
alter table queue.hosts enable row level security;
create policy hosts_system on queue.hosts for all to laneway_system using (true) with check (true);

-- Of hosts, from here on. Every look at the key or at the host's row is a query of its own without a reference to the row at
-- hand, so it is made once a statement and not once a row.
create policy hosts_own_read on queue.hosts for select to laneway_host
  using (name = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host'));
create policy hosts_own_beat on queue.hosts for update to laneway_host
  using (name = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host'))
  with check (last_heartbeat_at is null or (last_heartbeat_at <= now() and isfinite(last_heartbeat_at)));

-- What it claimed, whatever became of it, and what it may claim.
create policy work_items_host_read on queue.work_items for select to laneway_host using (
  host = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
  or (status = 'queued' and ready and available_at <= now()
    and org_id = any ((select h.org_ids from queue.hosts h where h.enabled
      and h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::uuid[])
    and kind = any ((select h.kinds from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::text[])
    and weight = any ((select h.weights from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::text[])
    and priority >= (select h.priority_floor from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
    and lane = (select h.lane from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
    and (host_preference is null
      or host_preference = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')))
);

-- Before: what it may claim, and what it holds by a lease that has not passed. After: a state it may leave behind, written at
-- the time it says, signed by nobody. A lease in the past is refused, as it would spend an attempt on nothing; one far ahead
-- is, as nobody could take the item back. What others count on from is bounded: a counter at its type's end or a time out of
-- reach would fail the statement of whoever meets the row next, and with it all that is in its batch.
create policy work_items_host_write on queue.work_items for update to laneway_host using (
  (status = 'claimed' and lease_expires_at > now()
    and host = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host'))
  or (status = 'queued' and ready and available_at <= now()
    and org_id = any ((select h.org_ids from queue.hosts h where h.enabled
      and h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::uuid[])
    and kind = any ((select h.kinds from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::text[])
    and weight = any ((select h.weights from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::text[])
    and priority >= (select h.priority_floor from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
    and lane = (select h.lane from queue.hosts h
      where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
    and (host_preference is null
      or host_preference = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')))
) with check (
  host = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
  and updated_at = now() and updated_by = '00000000-0000-0000-0000-000000000000'
  and available_at between timestamptz '2000-01-01 00:00:00Z' and now() + interval '36600 days'
  and attempts between 0 and 1000000 and expiries between 0 and 1000000 and claims between 1 and 1000000000000
  and length(coalesce(last_error, '')) <= 4000 and length(coalesce(note, '')) <= 4000
  and length(coalesce(claimed_by, '')) <= 200
  and case status
    when 'claimed' then claim_token is not null and claimed_by is not null
      and lease_expires_at > now() and lease_expires_at <= now() + interval '1 hour'
    when 'queued' then claim_token is null and claimed_by is null and audit_id is null
      and (not ready or available_at <= now())
    when 'done' then claim_token is not null and audit_id is null
    when 'failed' then claim_token is not null and audit_id is not null
    else false
  end
);

create policy attempts_host_read on queue.attempts for select to laneway_host
  using (host = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host'));
create policy attempts_host_write on queue.attempts for insert to laneway_host with check (
  host = (select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')
  and org_id = any ((select h.org_ids from queue.hosts h
    where h.name = nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'host')::uuid[])
);

grant select on queue.work_items to laneway_host;
-- Not: org, payload, kind, lane, priority, weight, host_preference, key, max_attempts, and who enqueued it when.
grant update (status, ready, claimed_by, claim_token, lease_expires_at, attempts, claims, expiries, available_at, last_error,
  note, audit_id, updated_at, updated_by, host) on queue.work_items to laneway_host;
grant select, update (last_heartbeat_at, current_workers, updated_at) on queue.hosts to laneway_host;
-- Whether somebody sweeps, for a host's check: without a sweep what it leaves behind would stay.
grant select on queue.sweep_steps to laneway_host;
grant select, insert (org_id, item_id, claim_token, attempt, host, worker, started_at, finished_at, duration_ms, outcome,
  reason, exit_code, signal, stdout_tail, stderr_tail, stdout_cut_bytes, stderr_cut_bytes) on queue.attempts to laneway_host;

grant select on queue.attempts to laneway_runtime;
-- Rows are locked before they are deleted, and only who may update may lock.
grant select, delete, update (created_at) on queue.attempts to laneway_system;
-- Its sweep takes orgs that have ended off the lists.
grant select, update (org_ids, updated_at) on queue.hosts to laneway_system;
