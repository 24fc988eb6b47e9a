drop table core_outbox;
drop table core_memberships;
drop table core_users;
drop table core_orgs;
