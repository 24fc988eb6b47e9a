-- claimFairly (tenant-less): due items alone, by org within a priority. It costs an enqueue 3 µs and 176 bytes of log, so it
-- is made only for workers that claim fairly. On a large live table make it concurrently beforehand: this then finds it.
create index if not exists work_items_fair on queue.work_items (lane, kind, priority, org_id, available_at, id) where ready;
