import assert from "node:assert/strict";
import { CHAINS, newId, SqliteDatabase } from "../../../mod.ts";
import { SHIPMENTS_CHAIN } from "./chain.ts";
import { SqliteShipmentStorage } from "./storage/sqlite.ts";

Deno.test("shipments of an earlier release are read after the upgrade, and kept when it is taken back", async () => {
  const db = new SqliteDatabase(":memory:");
  try {
    const script = (sql: string) => db.write((session) => session.script(sql));
    for (const chain of CHAINS) for (const { up } of chain.sqlite) await script(up);
    const [first, second] = SHIPMENTS_CHAIN.sqlite;
    await script(first?.up ?? "");
    const [orgId, id, item, author] = [newId(), newId(), newId(), newId()];
    await script(`insert into shipments_shipments values ('${orgId}', '${id}', 1, 'DHL', '12345', 'Ada', 'Łódź',
      'https://hooks.example/', 'created', null, '${item}', 1, 1, '${author}', '${author}')`);
    await script(second?.up ?? "");
    const storage = new SqliteShipmentStorage(db);
    const found = await storage.readShipment(orgId, id) ?? assert.fail("it is not there");
    assert.deepEqual([found.itemId, found.notificationId, found.parking], [item, item, null]);
    const mark = { id, expectedVersion: 1, updatedBy: author, reason: "x", resumeAt: new Date(0), host: null };
    assert.equal((await storage.park(orgId, mark, []))?.version, 2);
    await script(second?.down ?? "");
    const rows = await db.read((session) => session.all("select * from shipments_shipments"));
    assert.deepEqual(rows.map((row) => [row.id, row.version, Object.keys(row).length]), [[id, 2, 15]]);
  } finally {
    db.close();
  }
});
