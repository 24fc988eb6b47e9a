drop table core.socket_tickets;
drop table core.sessions;
alter table core.memberships drop column revived_at;
