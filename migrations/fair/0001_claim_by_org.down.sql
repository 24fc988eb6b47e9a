drop index if exists queue.work_items_fair;
