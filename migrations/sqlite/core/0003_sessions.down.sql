drop table core_socket_tickets;
drop table core_sessions;
alter table core_memberships drop column revived_at;
