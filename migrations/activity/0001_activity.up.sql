-- Events (what changed, in order, for each org) and audit entries (what was done, by whom).
-- No foreign key leads to core: the areas may live in different databases.

create schema if not exists activity;
grant usage on schema activity to laneway_runtime, laneway_system;

-- The last seq given to each org. A counter row and not a sequence: a sequence leaves a gap wherever a statement is
-- rolled back, and `seq` is promised to have none.
create table activity.event_cursors (
  org_id uuid primary key,
  last_seq bigint not null check (last_seq > 0)
);
alter table activity.event_cursors enable row level security;
alter table activity.event_cursors force row level security;
create policy event_cursors_tenant on activity.event_cursors to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy event_cursors_system on activity.event_cursors to laneway_system using (true) with check (true);
grant select, insert, update on activity.event_cursors to laneway_runtime;

create table activity.events (
  org_id uuid not null,
  id uuid not null,
  seq bigint not null check (seq > 0),
  kind text not null,
  actor_id uuid not null,
  request_id uuid,
  payload jsonb not null,
  created_at timestamptz not null,
  primary key (org_id, id),
  unique (org_id, seq)
);
alter table activity.events enable row level security;
alter table activity.events force row level security;
create policy events_tenant on activity.events to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy events_system on activity.events to laneway_system using (true) with check (true);
grant select, insert on activity.events to laneway_runtime;

create table activity.audit_entries (
  org_id uuid not null,
  id uuid not null,
  actor_id uuid not null,
  action text not null,
  subject_type text not null,
  subject_id text not null,
  request_id uuid,
  app text not null,
  detail jsonb not null,
  created_at timestamptz not null,
  primary key (org_id, id)
);
create index audit_entries_by_age on activity.audit_entries (org_id, created_at desc, id desc);
alter table activity.audit_entries enable row level security;
alter table activity.audit_entries force row level security;
create policy audit_entries_tenant on activity.audit_entries to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy audit_entries_system on activity.audit_entries to laneway_system using (true) with check (true);
-- Entries are written by bookkeeping, for a batch that spans orgs, and read by their org. Nobody changes one.
grant select on activity.audit_entries to laneway_runtime;
grant select, insert on activity.audit_entries to laneway_system;
