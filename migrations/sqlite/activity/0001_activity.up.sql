-- The activity area in the embedded store. Times are epoch milliseconds, JSON is text, ids are lower-case text.

create table activity_event_cursors (
  org_id text primary key,
  last_seq integer not null check (last_seq > 0)
) strict, without rowid;

create table activity_events (
  org_id text not null,
  id text not null,
  seq integer not null check (seq > 0),
  kind text not null,
  actor_id text not null,
  request_id text,
  payload text not null,
  created_at integer not null,
  primary key (org_id, id),
  unique (org_id, seq)
) strict;

create table activity_audit_entries (
  org_id text not null,
  id text not null,
  actor_id text not null,
  action text not null,
  subject_type text not null,
  subject_id text not null,
  request_id text,
  app text not null,
  detail text not null,
  created_at integer not null,
  primary key (org_id, id)
) strict;
create index activity_audit_entries_by_age on activity_audit_entries (org_id, created_at desc, id desc);
