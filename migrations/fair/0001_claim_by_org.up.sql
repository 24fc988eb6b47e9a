-- claimFairly (tenant-less): due items alone, by org within a priority. It costs an enqueue 4 µs and 197 bytes of log, so it
-- is made only for workers that claim fairly. On a large live table make it concurrently beforehand: this then finds it.
-- The org stands in an expression, and so does the condition: no other index can serve what asks for it, so no plan, made
-- of whatever statistics, reads another org's backlog.
create index if not exists work_items_fair
  on queue.work_items (lane, kind, priority, (case when ready then org_id end), available_at, id)
  where (case when ready then org_id end) is not null;
