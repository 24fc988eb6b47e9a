/**
 * What schemas consist of, as text that two states of a database can be compared by.
 *
 * @module
 */
import type { PostgresClient } from "../../src/db/client.ts";

/** One line for each column, index, constraint, policy and grant, sorted. */
export async function dumpSchemas(client: PostgresClient, schemas: readonly string[]): Promise<string[]> {
  const rows = await client.query<{ line: string }>(
    `with picked as (select oid, nspname, nspacl, nspowner from pg_namespace where nspname = any($1::text[])),
      tables as (select c.*, nspname from pg_class c join picked n on n.oid = c.relnamespace)
    select format('column %s.%s.%s %s %s %s', c.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        a.attnotnull, pg_get_expr(d.adbin, d.adrelid)) as line
      from tables c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      where c.relkind in ('r', 'p')
    union all select format('table %s.%s %s %s %s %s', nspname, relname, relkind, relpersistence,
        relrowsecurity, relforcerowsecurity) || coalesce(array_to_string(reloptions, ','), '') from tables
    union all select format('index %s', pg_get_indexdef(i.indexrelid)) from pg_index i join tables c on c.oid = i.indrelid
    union all select format('constraint %s.%s %s', n.nspname, conname, pg_get_constraintdef(k.oid))
      from pg_constraint k join picked n on n.oid = k.connamespace
    union all select format('policy %s', p) from pg_policies p where schemaname = any($1::text[])
    union all select format('grant %s.%s %s %s', c.nspname, c.relname, x.grantee::regrole, x.privilege_type)
      from tables c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
    union all select format('grant %s.%s.%s %s %s', c.nspname, c.relname, a.attname, x.grantee::regrole, x.privilege_type)
      from tables c join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl) x
    union all select format('grant schema %s %s %s', n.nspname, x.grantee::regrole, x.privilege_type)
      from picked n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
    order by 1`,
    [`{${schemas.join(",")}}`],
  );
  return rows.map((row) => row.line);
}
