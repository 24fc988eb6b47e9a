-- Policies, indexes and grants go with their tables. The schema stays: the migrator keeps its own table there.
drop table core.cache_entries;
drop table core.outbox;
drop table core.memberships;
drop table core.users;
drop table core.orgs;
revoke usage on schema core from laneway_runtime, laneway_system;
