-- Markers of requests that must take effect once: who tries, what the record will be called, what came of it.
create table core.idempotency_markers (
  org_id uuid not null,
  key text not null check (length(key) between 1 and 200),
  state text not null check (state in ('pending', 'released', 'finished')),
  -- The fence of the attempt at hand: only its holder may finish or release.
  attempt_token uuid not null,
  -- SHA-256 of the request: the same key for another request is a mistake of its caller.
  request_digest text not null,
  -- Chosen by the first attempt and kept by all later ones, so that they create one record.
  record_id uuid not null,
  outcome jsonb,
  lease_expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org_id, key)
);
-- Tenant-less, so it does not lead with org_id: the purge takes the longest untouched of all orgs.
create index idempotency_markers_age on core.idempotency_markers (updated_at);
alter table core.idempotency_markers enable row level security;
alter table core.idempotency_markers force row level security;
create policy idempotency_markers_tenant on core.idempotency_markers to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy idempotency_markers_system on core.idempotency_markers to laneway_system using (true) with check (true);
grant select, insert, update on core.idempotency_markers to laneway_runtime;
grant select, delete, update on core.idempotency_markers to laneway_system;
