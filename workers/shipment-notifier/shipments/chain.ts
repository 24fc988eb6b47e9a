/**
 * The shipments schema: its migrations, and whose rows its tables hold.
 *
 * @module
 */
import type { MigrationChain, TableScope } from "../../../mod.ts";
import postgresDown1 from "../migrations/postgres/0001_shipments.down.sql" with { type: "text" };
import postgresUp1 from "../migrations/postgres/0001_shipments.up.sql" with { type: "text" };
import postgresDown2 from "../migrations/postgres/0002_parking.down.sql" with { type: "text" };
import postgresUp2 from "../migrations/postgres/0002_parking.up.sql" with { type: "text" };
import sqliteDown1 from "../migrations/sqlite/0001_shipments.down.sql" with { type: "text" };
import sqliteUp1 from "../migrations/sqlite/0001_shipments.up.sql" with { type: "text" };
import sqliteDown2 from "../migrations/sqlite/0002_parking.down.sql" with { type: "text" };
import sqliteUp2 from "../migrations/sqlite/0002_parking.up.sql" with { type: "text" };

/** In the core area: a shipment and its outbox rows are one write, so they share a database. */
export const SHIPMENTS_CHAIN: MigrationChain = {
  name: "shipments",
  area: "core",
  postgres: [{ version: 1, name: "shipments", up: postgresUp1, down: postgresDown1 }, {
    version: 2,
    name: "parking",
    up: postgresUp2,
    down: postgresDown2,
  }],
  sqlite: [{ version: 1, name: "shipments", up: sqliteUp1, down: sqliteDown1 }, {
    version: 2,
    name: "parking",
    up: sqliteUp2,
    down: sqliteDown2,
  }],
};

/** The scope map of the schema, for the house test on row-level security. */
export const SHIPMENTS_SCOPES: Readonly<Record<string, TableScope>> = {
  "shipments.shipments": { area: "core", scope: "org" },
  "shipments.endpoints": { area: "core", scope: "org" },
};
