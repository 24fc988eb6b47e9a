-- The core area in the embedded store. Times are epoch milliseconds, JSON is text, ids are lower-case text.
-- No cache table: the embedded store serves one machine, whose cache is in memory.

create table core_orgs (
  id text primary key,
  name text not null check (length(name) between 1 and 200),
  created_at integer not null,
  ended_at integer
) strict;

create table core_users (
  id text primary key,
  name text not null check (length(name) between 1 and 200),
  created_at integer not null
) strict;

create table core_memberships (
  org_id text not null references core_orgs (id),
  user_id text not null references core_users (id),
  role text not null check (role in ('OWNER', 'MEMBER')),
  created_at integer not null,
  ended_at integer,
  primary key (org_id, user_id)
) strict, without rowid;

create table core_outbox (
  org_id text not null,
  id text not null,
  kind text not null,
  payload text not null,
  actor_id text not null,
  request_id text,
  traceparent text,
  created_at integer not null,
  done_at integer,
  primary key (org_id, id)
) strict;
-- Tenant-less, so neither leads with org_id: the relay and the purge serve all orgs.
create index core_outbox_pending on core_outbox (created_at, id) where done_at is null;
create index core_outbox_done on core_outbox (done_at) where done_at is not null;
