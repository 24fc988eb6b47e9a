-- Sample records in the embedded store. Times are epoch milliseconds, ids are lower-case text.

create table sample_records_sample_records (
  org_id text not null,
  id text not null,
  version integer not null check (version >= 1),
  reference text not null check (length(reference) between 1 and 200),
  status text not null check (status in ('open', 'done')),
  -- The id of its HANDLE_SAMPLE_RECORD item, and so what the receiver of its effect knows it by.
  effect_id text not null,
  done_at integer,
  created_at integer not null,
  updated_at integer not null,
  created_by text not null,
  updated_by text not null,
  primary key (org_id, id),
  check ((status = 'done') = (done_at is not null))
) strict;
