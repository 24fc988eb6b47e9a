drop table shipments_shipments;
