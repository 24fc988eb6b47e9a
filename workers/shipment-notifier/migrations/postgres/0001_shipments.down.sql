-- Policies, indexes and grants go with the table. The schema stays: the migrator keeps its own table there.
drop table shipments.shipments;
revoke usage on schema shipments from laneway_runtime, laneway_system;
