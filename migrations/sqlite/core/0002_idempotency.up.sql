create table core_idempotency_markers (
  org_id text not null,
  key text not null check (length(key) between 1 and 200),
  state text not null check (state in ('pending', 'released', 'finished')),
  attempt_token text not null,
  request_digest text not null,
  record_id text not null,
  outcome text,
  lease_expires_at integer not null,
  created_at integer not null,
  updated_at integer not null,
  primary key (org_id, key)
) strict;
create index core_idempotency_markers_age on core_idempotency_markers (updated_at);
