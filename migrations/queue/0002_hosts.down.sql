drop policy work_items_host_write on queue.work_items;
drop policy work_items_host_read on queue.work_items;
drop table queue.attempts;
drop table queue.hosts;
revoke select, update on queue.work_items from laneway_host;
revoke select on queue.sweep_steps from laneway_host;
-- What is done goes where the sweep would have moved it. The policies bind the owner too while they are forced.
alter table queue.work_items no force row level security;
alter table queue.work_history no force row level security;
with done as (
  delete from queue.work_items where status = 'done' returning *
)
insert into queue.work_history (org_id, id, created_at, created_by, request_id, target_id, available_at, finished_at,
  claim_token, claims, attempts, max_attempts, priority, kind, lane, weight, host_preference, idempotency_key, traceparent,
  payload, last_error, note)
select org_id, id, created_at, created_by, request_id, target_id, available_at, updated_at, claim_token, claims, attempts,
  max_attempts, priority, kind, lane, weight, host_preference, idempotency_key, traceparent, payload, last_error, note
from done;
alter table queue.work_items force row level security;
alter table queue.work_history force row level security;
drop index queue.work_items_done;
alter table queue.work_items drop column host;
alter table queue.work_items drop constraint work_items_status_check;
alter table queue.work_items add constraint work_items_status_check check (status in ('queued', 'claimed', 'failed'));
