/**
 * The demo as a person runs it: twice, interrupted, and wrongly.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { SqliteDatabase } from "../../../mod.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { type Child, runChild, startChild } from "./child.ts";

const SAMPLE = fileURLToPath(new URL("../sample.ndjson", import.meta.url));
const MALFORMED = [17, 58, 103, 150, 201];
const GOOD = 225;

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-demo-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function counted<T>(file: string, sql: string): Promise<T> {
  const db = new SqliteDatabase(file);
  try {
    return await db.read((session) => session.all(sql)) as T;
  } finally {
    db.close();
  }
}

/** What the store says: shipments by status and version, and the items by status. */
async function state(file: string): Promise<unknown> {
  return {
    shipments: await counted(
      file,
      "select status, version, count(*) n from shipments_shipments group by 1, 2 order by 1",
    ).then(plain),
    items: await counted(file, "select status, count(*) n from queue_work_items group by 1 order by 1").then(plain),
    marks: await counted(
      file,
      "select count(*) n, count(distinct json_extract(payload, '$.id')) ids from activity_events " +
        "where kind = 'shipments.shipment.notified'",
    ).then(plain),
  };
}

function plain(rows: unknown): unknown {
  return JSON.parse(JSON.stringify(rows));
}

const ALL_DONE = {
  shipments: [{ status: "created", version: 1, n: 1 }, { status: "notified", version: 2, n: GOOD - 1 }],
  items: [{ status: "done", n: GOOD - 1 }, { status: "failed", n: 1 }],
  marks: [{ n: GOOD - 1, ids: GOOD - 1 }],
};

/** What the receiver accepted: the shipment and the webhook-id of each. */
function accepted(stdout: string): { shipment: string; id: string }[] {
  return [...stdout.matchAll(/^delivered .* shipment=(\S+) webhook-id=(\S+) answer=204 /gm)]
    .map(([, shipment = "", id = ""]) => ({ shipment, id }));
}

Deno.test("the demo notifies of every shipment once, and of none again on the same file", async () => {
  await inFolder(async (folder) => {
    const file = `${folder}/demo.db`;
    const first = await runChild(["demo", "--file", file]);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(first.stderr, "");
    assert.match(first.stdout, new RegExp(`^store    ${file}$`, "m"));
    assert.match(first.stdout, /^metrics {2}http:\/\/127\.0\.0\.1:\d+\/metrics$/m);
    assert.match(first.stdout, /^health {3}http:\/\/127\.0\.0\.1:\d+\/healthz$/m);
    const skipped = [...first.stdout.matchAll(/^line (\d+) skipped: (.+)$/gm)];
    assert.deepEqual(skipped.map(([, line]) => Number(line)), MALFORMED);
    assert.match(
      first.stdout,
      /\n224 delivered, [1-9]\d retried, 1 dead-lettered, 5 skipped in \d+\.\d s\n$/,
    );
    const told = accepted(first.stdout);
    assert.equal(told.length, GOOD - 1);
    assert.equal(new Set(told.map(({ shipment }) => shipment)).size, GOOD - 1);
    assert.equal(new Set(told.map(({ id }) => id)).size, GOOD - 1);
    assert.deepEqual(await state(file), ALL_DONE);
    const second = await runChild(["demo", "--file", file]);
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(accepted(second.stdout), []);
    assert.match(
      second.stdout,
      /\n0 delivered, 0 retried, 0 dead-lettered, 5 skipped in \S+ s \(224 already notified, 1 dead-lettered before\)\n$/,
    );
    assert.deepEqual(await state(file), ALL_DONE);
    const fresh = await runChild(["demo", "--store", `sqlite:${file}`, "--fresh", "--log-format", "json"]);
    assert.match(fresh.stdout, /\n224 delivered, /);
  });
});

for (const signal of ["SIGINT", "SIGKILL"] as const) {
  Deno.test(`the demo goes on where ${signal} stopped it, and notifies of every shipment once`, async () => {
    await inFolder(async (folder) => {
      const file = `${folder}/demo.db`;
      const stopped = startChild(["demo", "--file", file, "--lease", "3s"]);
      await until(stopped, "some deliveries", () => accepted(stopped.stdout()).length >= 40);
      stopped.kill(signal);
      const end = await stopped.ended;
      const before = accepted(stopped.stdout());
      assert.ok(before.length < GOOD - 1, "it was stopped too late to show anything");
      if (signal === "SIGINT") {
        assert.equal(end.code, 130, stopped.stderr());
        assert.match(stopped.stdout(), /\ninterrupted: run it again to go on where it stopped\n$/);
        assert.match(
          stopped.stdout(),
          new RegExp(`\\n${before.length} delivered, `),
          "the drain's deliveries count too",
        );
        const claimed = await counted(file, "select id from queue_work_items where status = 'claimed'");
        assert.deepEqual(claimed, [], "every item was handed back");
      }
      const second = await runChild(["demo", "--file", file, "--lease", "3s"]);
      assert.equal(second.code, 0, second.stderr);
      // Killed between the mark and the completion, an item is under the dead one's lease still when all are notified: the
      // demo does not wait for that, a worker does.
      if (signal === "SIGKILL") await serveUntilDone(file);
      assert.deepEqual(await state(file), ALL_DONE);
      const told = [...before, ...accepted(second.stdout)];
      // Killed between the webhook and the mark, a shipment is told again, but never under a second id.
      if (signal === "SIGINT") assert.equal(told.length, GOOD - 1);
      assert.equal(new Set(told.map(({ shipment }) => shipment)).size, GOOD - 1);
      assert.equal(new Set(told.map(({ id }) => id)).size, GOOD - 1);
    });
  });
}

/** Serves as a worker until nothing is under a lease. */
async function serveUntilDone(file: string): Promise<void> {
  const worker = startChild([
    "serve",
    "--store",
    `sqlite:${file}`,
    "--http",
    "off",
    "--sweep",
    "200ms",
    "--poll",
    "100ms",
  ]);
  try {
    await waitFor("what the dead one held", async () => {
      const held = await counted<unknown[]>(
        file,
        "select id from queue_work_items where status in ('claimed', 'queued')",
      );
      return held.length === 0;
    }, { timeoutMs: 20_000 });
  } finally {
    worker.kill("SIGTERM");
    await worker.ended;
  }
}

async function until(child: Child, what: string, look: () => boolean): Promise<void> {
  let ended = false;
  child.ended.then(() => ended = true);
  await waitFor(what, () => {
    if (ended && !look()) throw new Error(`It ended before ${what}: ${child.stdout()}${child.stderr()}`);
    return look();
  }, { timeoutMs: 30_000, everyMs: 2 });
}

Deno.test("the demo ends also where finished items are removed at once", async () => {
  await inFolder(async (folder) => {
    const { code, stdout, stderr } = await runChild(
      ["demo", "--file", `${folder}/demo.db`, "--item-retention", "0s", "--sweep", "100ms"],
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /\n224 delivered, \d+ retried, 1 dead-lettered, 5 skipped /);
  });
});

Deno.test("the demo takes lines of one's own, whatever their lane and however their last line ends", async () => {
  await inFolder(async (folder) => {
    const [line = ""] = (await Deno.readTextFile(SAMPLE)).split("\n");
    const input = `${folder}/mine.ndjson`;
    const lane = { ...JSON.parse(line), lane: "express" };
    await Deno.writeTextFile(input, `\ufeff${JSON.stringify(lane)}\r\n\r\n{}\n[1]\n${line}`);
    const { code, stdout, stderr } = await runChild(["demo", "--file", `${folder}/demo.db`, "--input", input]);
    assert.equal(code, 0, stderr);
    assert.deepEqual([...stdout.matchAll(/^line (\d+) skipped/gm)].map(([, n]) => Number(n)), [3, 4]);
    assert.match(stdout, /\n1 delivered, [01] retried, 0 dead-lettered, 2 skipped /);
  });
});

const WRONG: readonly (readonly [string, (folder: string) => readonly string[], number, RegExp])[] = [
  [
    "an input that is not there",
    (f) => ["--file", `${f}/a.db`, "--input", `${f}/no.ndjson`],
    1,
    /no\.ndjson: there is no/,
  ],
  ["an input that is a folder", (f) => ["--file", `${f}/a.db`, "--input", f], 1, /it is a folder/],
  ["a file in no folder", (f) => ["--file", `${f}/no/a.db`], 1, /no\/a\.db/],
  ["a file that is no database", () => ["--file", SAMPLE], 1, /sample\.ndjson: file is not a database/],
  ["removing what is no database", () => ["--file", SAMPLE, "--fresh"], 1, /it is no SQLite file/],
  ["two stores", (f) => ["--file", `${f}/a.db`, "--store", "memory"], 2, /--file with --store/],
  ["nothing to be fresh", () => ["--store", "memory", "--fresh"], 2, /--fresh/],
];

Deno.test("the demo ends with one line on what is wrong, and nothing done", async (t) => {
  for (const [what, args, code, line] of WRONG) {
    await t.step(what, async () => {
      await inFolder(async (folder) => {
        const ended = await runChild(["demo", ...args(folder)]);
        assert.equal(ended.code, code, ended.stderr);
        assert.match(ended.stderr, line);
        assert.equal(ended.stderr.trim().split("\n").length, 1, ended.stderr);
        assert.doesNotMatch(ended.stdout, /delivered/);
        assert.deepEqual([...Deno.readDirSync(folder)].map((entry) => entry.name), []);
      });
    });
  }
});

Deno.test("the demo does not touch a Postgres that only the environment names", async () => {
  await inFolder(async (folder) => {
    const nowhere = "postgres://nobody:nothing@127.0.0.1:1/none";
    const { code, stderr } = await runChild(["demo"], {
      LANEWAY_DATABASE_URL: nowhere,
      LANEWAY_SYSTEM_DATABASE_URL: nowhere,
    }, folder);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await state(`${folder}/.demo/laneway.db`), ALL_DONE);
  });
});
