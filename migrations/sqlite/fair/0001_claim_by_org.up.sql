-- claimFairly: due items alone, by org within a priority.
create index if not exists queue_work_items_fair on queue_work_items (lane, kind, priority, org_id, available_at, id)
  where status = 'queued' and ready = 1;
