-- Sessions and socket tickets; secrets as their SHA-256 digests alone.
alter table core_memberships add column revived_at integer;

create table core_sessions (
  org_id text not null,
  id text not null,
  user_id text not null,
  secret_digest text not null check (length(secret_digest) = 64),
  created_at integer not null,
  last_used_at integer not null,
  expires_at integer not null,
  ended_at integer,
  primary key (org_id, id),
  unique (org_id, secret_digest)
) strict;
create index core_sessions_ended on core_sessions (ended_at) where ended_at is not null;
create index core_sessions_expiry on core_sessions (expires_at);
create index core_sessions_idle on core_sessions (last_used_at);

create table core_socket_tickets (
  org_id text not null,
  secret_digest text not null check (length(secret_digest) = 64),
  user_id text not null,
  created_at integer not null,
  expires_at integer not null,
  redeemed_at integer,
  primary key (org_id, secret_digest)
) strict;
create index core_socket_tickets_redeemed on core_socket_tickets (redeemed_at) where redeemed_at is not null;
create index core_socket_tickets_expiry on core_socket_tickets (expires_at);
