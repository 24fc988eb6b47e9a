/**
 * A small schema of the tests' own: one tenant table, as a real area would have it.
 *
 * @module
 */
import type { MigrationChain } from "../../src/db/chain.ts";

const TENANT = "nullif(current_setting('laneway.org_id', true), '')::uuid";

/** Applied to the core area's database; two steps, so that "behind" can be tested. */
export const EXAMPLE_CHAIN: MigrationChain = {
  name: "example",
  area: "core",
  postgres: [
    {
      version: 1,
      name: "notes",
      up: `
        create table example.notes (
          org_id uuid not null, id uuid not null, text text not null, payload jsonb, primary key (org_id, id)
        );
        alter table example.notes enable row level security;
        alter table example.notes force row level security;
        create policy notes_tenant on example.notes to laneway_runtime
          using (org_id = ${TENANT}) with check (org_id = ${TENANT});
        create policy notes_system on example.notes to laneway_system using (true) with check (true);
        grant select, insert, update, delete on example.notes to laneway_runtime, laneway_system;`,
      down: "drop table example.notes;",
    },
    {
      version: 2,
      name: "marks",
      up: "alter table example.notes add column mark integer not null default 0; create index on example.notes (mark);",
      down: "alter table example.notes drop column mark;",
    },
  ],
  sqlite: [
    {
      version: 1,
      name: "notes",
      up:
        "create table example_notes (org_id text not null, id text not null, text text not null, primary key (org_id, id)) strict;",
      down: "drop table example_notes;",
    },
    {
      version: 2,
      name: "marks",
      up:
        "alter table example_notes add column mark integer not null default 0; create index example_mark on example_notes (mark);",
      down: "drop index example_mark; alter table example_notes drop column mark;",
    },
  ],
};
