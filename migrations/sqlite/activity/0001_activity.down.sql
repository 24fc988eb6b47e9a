drop table activity_audit_entries;
drop table activity_events;
drop table activity_event_cursors;
