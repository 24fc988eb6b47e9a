-- Policies, indexes and grants go with their tables. The schema stays: the migrator keeps its own table there.
drop table activity.audit_entries;
drop table activity.events;
drop table activity.event_cursors;
revoke usage on schema activity from laneway_runtime, laneway_system;
