-- Sessions and socket tickets. Secrets are kept as their SHA-256 digests alone: whoever reads these tables can sign in as
-- nobody.

-- When an ended membership came to life again: what was begun before, sessions and tickets, stays dead.
alter table core.memberships add column revived_at timestamptz;

create table core.sessions (
  org_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  secret_digest text not null check (length(secret_digest) = 64),
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  -- The absolute end, promised at creation; the idle time is the process's setting.
  expires_at timestamptz not null,
  ended_at timestamptz,
  primary key (org_id, id),
  unique (org_id, secret_digest)
);
-- Tenant-less, so none leads with org_id: the purge takes what is over in all orgs.
create index sessions_ended on core.sessions (ended_at) where ended_at is not null;
create index sessions_expiry on core.sessions (expires_at);
create index sessions_idle on core.sessions (last_used_at);
alter table core.sessions enable row level security;
alter table core.sessions force row level security;
create policy sessions_tenant on core.sessions to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy sessions_system on core.sessions to laneway_system using (true) with check (true);
grant select, insert, update on core.sessions to laneway_runtime;
-- Update for the row locks of the purge.
grant select, update, delete on core.sessions to laneway_system;

create table core.socket_tickets (
  org_id uuid not null,
  secret_digest text not null check (length(secret_digest) = 64),
  user_id uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  redeemed_at timestamptz,
  primary key (org_id, secret_digest)
);
create index socket_tickets_redeemed on core.socket_tickets (redeemed_at) where redeemed_at is not null;
create index socket_tickets_expiry on core.socket_tickets (expires_at);
alter table core.socket_tickets enable row level security;
alter table core.socket_tickets force row level security;
create policy socket_tickets_tenant on core.socket_tickets to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy socket_tickets_system on core.socket_tickets to laneway_system using (true) with check (true);
grant select, insert, update on core.socket_tickets to laneway_runtime;
grant select, update, delete on core.socket_tickets to laneway_system;
