/**
 * The schema of sample records: its migrations, and whose rows its tables hold.
 *
 * @module
 */
import type { MigrationChain, TableScope } from "laneway";
import postgresDown1 from "../migrations/postgres/0001_sample_records.down.sql" with { type: "text" };
import postgresUp1 from "../migrations/postgres/0001_sample_records.up.sql" with { type: "text" };
import sqliteDown1 from "../migrations/sqlite/0001_sample_records.down.sql" with { type: "text" };
import sqliteUp1 from "../migrations/sqlite/0001_sample_records.up.sql" with { type: "text" };

/** In the core area: a sample record and its outbox rows are one write, so they share a database. */
export const SAMPLE_RECORDS_CHAIN: MigrationChain = {
  name: "sample_records",
  area: "core",
  postgres: [{ version: 1, name: "sample_records", up: postgresUp1, down: postgresDown1 }],
  sqlite: [{ version: 1, name: "sample_records", up: sqliteUp1, down: sqliteDown1 }],
};

/** Whose rows the tables of the schema hold. */
export const SAMPLE_RECORDS_SCOPES: Readonly<Record<string, TableScope>> = {
  "sample_records.sample_records": { area: "core", scope: "org" },
};
