drop table core_idempotency_markers;
