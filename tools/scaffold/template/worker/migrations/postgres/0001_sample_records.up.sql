-- Sample records: versioned, each with the item that works on it.
-- The login that migrates owns the table; FORCE holds it to the policies too.

create schema if not exists sample_records;
grant usage on schema sample_records to laneway_runtime, laneway_system;

-- No foreign key to core.orgs: nothing of a worker's own may lock or depend on the house's tables.
create table sample_records.sample_records (
  org_id uuid not null,
  id uuid not null,
  version int not null check (version >= 1),
  reference text not null check (length(reference) between 1 and 200),
  status text not null check (status in ('open', 'done')),
  -- The id of its HANDLE_SAMPLE_RECORD item, and so what the receiver of its effect knows it by.
  effect_id uuid not null,
  done_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by uuid not null,
  updated_by uuid not null,
  primary key (org_id, id),
  check ((status = 'done') = (done_at is not null))
);
alter table sample_records.sample_records enable row level security;
alter table sample_records.sample_records force row level security;
create policy sample_records_tenant on sample_records.sample_records to laneway_runtime
  using (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid)
  with check (org_id = nullif(current_setting('laneway.org_id', true), '')::uuid);
create policy sample_records_system on sample_records.sample_records to laneway_system using (true) with check (true);
grant select, insert, update on sample_records.sample_records to laneway_runtime;
grant select on sample_records.sample_records to laneway_system;
