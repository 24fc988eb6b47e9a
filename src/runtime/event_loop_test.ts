import assert from "node:assert/strict";
import { TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import { systemClock } from "../core/clock.ts";

const ITEMS = 20_000;
/** A turn of the event loop may hold a claim and a settlement of 500 each, and what follows from them. */
const MOST_BETWEEN_TICKS = ITEMS / 4;

async function fill(rig: WorkerRig): Promise<void> {
  const ctx = await rig.org();
  const items = Array.from({ length: 1_000 }, (_, n) => n);
  for (let from = 0; from < ITEMS; from += items.length) {
    await rig.managers.work.enqueueMany(
      ctx,
      items.map((n) => ({ kind: TASK.name, idempotencyKey: `${from + n}`, payload: {} })),
    );
  }
}

/** Drains a backlog held in memory. @returns How many items had run at each tick of a timer, and at the end. */
async function drainBeside(capacity: number): Promise<number[]> {
  const ranAt = [0];
  await WorkerRig.with(async (rig) => {
    await fill(rig);
    let ran = 0;
    const all = Promise.withResolvers<void>();
    const ticking = setInterval(() => ranAt.push(ran), 10);
    try {
      // The real clock: the loop's own turns are part of what is asked about.
      const worker = rig.start(() => {
        if (++ran === ITEMS) all.resolve();
      }, { capacity, clock: systemClock });
      await all.promise;
      ranAt.push(ran);
      await worker.drain();
    } finally {
      clearInterval(ticking);
    }
  });
  return ranAt;
}

Deno.test("while a worker drains a backlog held in memory, timers have their turn", async () => {
  const ranAt = await drainBeside(1_000);
  const steps = ranAt.slice(1).map((ran, n) => ran - (ranAt[n] ?? 0));
  const most = Math.max(...steps);
  assert.ok(most <= MOST_BETWEEN_TICKS, `${most} of ${ITEMS} items ran between two ticks of a timer: ${steps}`);
});
