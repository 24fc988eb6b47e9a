-- Local logins and their passwords, for docker compose and deno task dev. Not for anything that others can reach.
create role laneway_runtime nologin;
create role laneway_system nologin;
create role laneway_host nologin;
create role app_owner login createrole password 'local';
create role app_runtime login password 'local' in role laneway_runtime;
create role app_system login password 'local' in role laneway_system;
alter database work owner to app_owner;
