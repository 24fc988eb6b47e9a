import { SqliteAuditStorage } from "../../src/audit/storage/sqlite.ts";
import { FakeClock } from "../../src/core/fake_clock.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { CHAINS } from "../../src/migrations.ts";
import { insertOutboxRows } from "../../src/outbox/rows.ts";
import { SqliteOutboxStorage } from "../../src/outbox/storage/sqlite.ts";
import { SqliteTenancyStorage } from "../../src/tenancy/storage/sqlite.ts";
import { testAuditStorage } from "./audit_storage.ts";
import type { Harness } from "./contract.ts";
import { testOutboxStorage } from "./outbox_storage.ts";
import { testTenancyStorage } from "./tenancy_storage.ts";

interface OpenStore extends Harness {
  readonly db: SqliteDatabase;
}

async function open(kind: ":memory:" | "file"): Promise<OpenStore> {
  const clock = new FakeClock();
  const folder = kind === "file" ? await Deno.makeTempDir({ prefix: "laneway-" }) : null;
  const db = new SqliteDatabase(folder === null ? ":memory:" : `${folder}/store.db`, { clock, synchronous: "NORMAL" });
  await migrateSqliteUp(db, CHAINS);
  return {
    db,
    advance: (ms) => clock.tick(ms),
    close: async () => {
      db.close();
      if (folder !== null) await Deno.remove(folder, { recursive: true });
    },
  };
}

for (const kind of [":memory:", "file"] as const) {
  testTenancyStorage(`sqlite ${kind}`, async () => {
    const store = await open(kind);
    return { ...store, storage: new SqliteTenancyStorage(store.db) };
  });

  testAuditStorage(`sqlite ${kind}`, async () => {
    const store = await open(kind);
    return { ...store, storage: new SqliteAuditStorage(store.db) };
  });

  testOutboxStorage(`sqlite ${kind}`, async () => {
    const store = await open(kind);
    return {
      ...store,
      storage: new SqliteOutboxStorage(store.db),
      seed: (rows) => store.db.write((session) => insertOutboxRows(session, rows)),
    };
  });
}
