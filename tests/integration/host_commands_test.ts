/**
 * Commands in a worker's own loop: what a stop, a lost lease and attempts that run out make of them.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import { openCommands } from "../../src/host/command/handler.ts";
import { kindsOf, parseCommandConfig } from "../../src/host/command/load.ts";
import { findMarked } from "../../src/host/command/processes.ts";
import type { AttemptRecord } from "../../src/host/types.ts";
import { waitFor } from "../support/wait_for.ts";
import { WorkerRig } from "../support/worker_rig.ts";

const SCRIPT = `trap '' TERM; echo $LANEWAY_RUN > "$1"; (trap '' TERM; sleep 300) & sleep 300`;

async function withCommands(
  kinds: Readonly<Record<string, unknown>>,
  use: (world: {
    rig: WorkerRig;
    folder: string;
    attempts: AttemptRecord[];
    handlers: Awaited<ReturnType<typeof openCommands>>["handlers"];
  }) => Promise<void>,
): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-host-" }));
  const text = JSON.stringify({ work: { base: "work" }, logs: { folder: "logs" }, kinds });
  const config = parseCommandConfig(text, `${folder}/commands.json`);
  const attempts: AttemptRecord[] = [];
  try {
    await WorkerRig.with(async (rig) => {
      const commands = await openCommands({
        config,
        host: "box",
        worker: "host-runner@box/1",
        clock: systemClock,
        logger: rig.logger,
        recordAttempt: (attempt) => Promise.resolve(void attempts.push(attempt)),
      });
      await use({ rig, folder, attempts, handlers: commands.handlers });
      await commands.close();
      assert.deepEqual(await Array.fromAsync(Deno.readDir(`${folder}/work`)), []);
    }, { kinds: kindsOf(config) });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const mark = (path: string) =>
  waitFor("the command", () => Deno.readTextFile(path).then((text) => text.trim() || undefined, () => undefined));

Deno.test("a runner that drains ends its commands whole before their items are handed back, uncharged", () =>
  withCommands({ SLOW: { argv: ["/bin/sh", "-c", SCRIPT, "sh", "{payload.started}"] } }, async (world) => {
    const { rig, folder, attempts, handlers } = world;
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { kind: "SLOW", payload: { started: `${folder}/started` } });
    const worker = rig.start(handlers, { clock: systemClock, drainGraceMs: 100 });
    const run = await mark(`${folder}/started`);
    assert.deepEqual(await worker.drain(), { finished: 0, released: 1, left: 0 });
    assert.deepEqual(await findMarked(run), []);
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.attempts], ["queued", 0]);
    assert.deepEqual(attempts.map(({ outcome, reason }) => [outcome, reason]), [["aborted", "drained"]]);
  }));

Deno.test("a command whose item another claim took is ended, and writes nothing of it", () =>
  withCommands({ SLOW: { argv: ["/bin/sh", "-c", SCRIPT, "sh", "{payload.started}"] } }, async (world) => {
    const { rig, folder, attempts, handlers } = world;
    const ctx = await rig.org();
    await rig.enqueue(ctx, { kind: "SLOW", payload: { started: `${folder}/started` } });
    rig.start(handlers, {
      clock: systemClock,
      leaseMs: 1_000,
      work: {
        extendLeases: (claimed) => Promise.resolve(claimed.map(() => false)),
        readClaim: () => Promise.resolve(null),
      },
    });
    const run = await mark(`${folder}/started`);
    await waitFor("the run's end", () => attempts.length === 1);
    assert.deepEqual(attempts.map(({ outcome, reason }) => [outcome, reason]), [["aborted", "lease_lost"]]);
    assert.deepEqual(await findMarked(run), []);
  }));

Deno.test("ends become what the table says: done, dead-lettered with a reason, run later uncharged", () =>
  withCommands({
    OK: { argv: ["true"] },
    BAD: { argv: ["/bin/sh", "-c", "echo no such thing >&2; exit 65"] },
    LATER: { argv: ["/bin/sh", "-c", "exit 75"] },
  }, async ({ rig, handlers, attempts }) => {
    const ctx = await rig.org();
    const [ok = "", bad = "", later = ""] = await Promise.all(
      ["OK", "BAD", "LATER"].map((kind) => rig.enqueue(ctx, { kind, payload: {} })),
    );
    rig.start(handlers, { clock: systemClock });
    await waitFor("three ends", () => attempts.length === 3);
    const status = (id: string, wanted: string) =>
      waitFor(wanted, async () => {
        const item = await rig.read(ctx, id).catch(() => null);
        return item?.status === wanted ? item : undefined;
      });
    await status(ok, "done");
    assert.match((await status(bad, "failed")).lastError ?? "", /exit_code: sh exited with 65 .*no such thing/);
    const deferred = await status(later, "queued");
    assert.equal(deferred.attempts, 0);
    assert.match(deferred.note ?? "", /EX_TEMPFAIL/);
  }));
