drop policy work_keys_system on queue.work_keys;
drop policy work_keys_tenant on queue.work_keys;
drop policy work_items_system on queue.work_items;
drop policy work_items_tenant on queue.work_items;
drop table queue.sweep_steps;
drop table queue.work_keys;
drop table queue.work_items;
revoke usage on schema queue from laneway_runtime, laneway_system, laneway_host;
