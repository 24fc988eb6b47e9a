drop table queue_sweep_steps;
drop table queue_work_keys;
drop table queue_work_items;
