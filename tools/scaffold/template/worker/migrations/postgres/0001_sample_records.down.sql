-- Policies, indexes and grants go with the table. The schema stays: the migrator keeps its own table there.
drop table sample_records.sample_records;
revoke usage on schema sample_records from laneway_runtime, laneway_system;
