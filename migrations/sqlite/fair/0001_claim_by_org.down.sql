drop index if exists queue_work_items_fair;
