drop table core.idempotency_markers;
