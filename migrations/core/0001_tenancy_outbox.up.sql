-- Orgs, users, memberships, the outbox, and the best-effort cache.
-- The login that migrates owns these tables; FORCE holds it to the policies too.

create schema if not exists core;
grant usage on schema core to laneway_runtime, laneway_system;

-- The tenant itself: its id is the org id, so `id` stands where other tables have `org_id`.
create table core.orgs (
  id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null,
  ended_at timestamptz
);
alter table core.orgs enable row level security;
alter table core.orgs force row level security;
create policy orgs_tenant on core.orgs to laneway_runtime
  using (id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy orgs_system on core.orgs to laneway_system using (true) with check (true);
grant select on core.orgs to laneway_runtime;
grant select, insert, update on core.orgs to laneway_system;

-- Scope system: a person belongs to no org. Only the system login reads it.
create table core.users (
  id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null
);
grant select, insert on core.users to laneway_system;

create table core.memberships (
  org_id uuid not null references core.orgs (id),
  user_id uuid not null references core.users (id),
  role text not null check (role in ('OWNER', 'MEMBER')),
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (org_id, user_id)
);
alter table core.memberships enable row level security;
alter table core.memberships force row level security;
create policy memberships_tenant on core.memberships to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy memberships_system on core.memberships to laneway_system using (true) with check (true);
grant select, insert, update on core.memberships to laneway_runtime;
grant select on core.memberships to laneway_system;

-- No foreign key to orgs: every core write inserts here, and the reference would lock the org's row each time.
create table core.outbox (
  org_id uuid not null,
  id uuid not null,
  kind text not null,
  payload jsonb not null,
  actor_id uuid not null,
  request_id uuid,
  traceparent text,
  created_at timestamptz not null,
  done_at timestamptz,
  primary key (org_id, id)
);
-- Tenant-less, so neither leads with org_id: the relay takes pending rows of all orgs, oldest first ...
create index outbox_pending on core.outbox (created_at, id) where done_at is null;
-- ... and the purge takes the longest done.
create index outbox_done on core.outbox (done_at) where done_at is not null;
alter table core.outbox enable row level security;
alter table core.outbox force row level security;
create policy outbox_tenant on core.outbox to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy outbox_system on core.outbox to laneway_system using (true) with check (true);
grant insert on core.outbox to laneway_runtime;
grant select, update (done_at), delete on core.outbox to laneway_system;

-- Scope system: liveness keys and the like. Unlogged, as nothing may depend on a key being there.
create unlogged table core.cache_entries (
  scope text not null,
  key text not null,
  value text not null,
  expires_at timestamptz not null,
  primary key (scope, key)
);
grant select, insert, update, delete on core.cache_entries to laneway_system;
