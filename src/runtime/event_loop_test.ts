import assert from "node:assert/strict";
import { TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import { systemClock } from "../core/clock.ts";

/** A turn of the event loop may hold two claims and two settlements of 500 each, and what follows from them. */
const MOST_IN_A_TURN = 5_000;

async function fill(rig: WorkerRig, items: number): Promise<void> {
  const ctx = await rig.org();
  const batch = Array.from({ length: 1_000 }, (_, n) => n);
  for (let from = 0; from < items; from += batch.length) {
    await rig.managers.work.enqueueMany(
      ctx,
      batch.map((n) => ({ kind: TASK.name, idempotencyKey: `${from + n}`, payload: {} })),
    );
  }
}

/** Drains a backlog held in memory, on the real clock: the loop's own turns are part of what is asked about. */
async function drain(
  options: { readonly items: number; readonly capacity: number; readonly handle?: () => void },
  beside: (ran: () => number) => void | Promise<void>,
): Promise<void> {
  await WorkerRig.with(async (rig) => {
    await fill(rig, options.items);
    let ran = 0;
    const all = Promise.withResolvers<void>();
    const worker = rig.start(() => {
      options.handle?.();
      if (++ran === options.items) all.resolve();
    }, { capacity: options.capacity, clock: systemClock });
    await Promise.all([beside(() => ran), all.promise]);
    await worker.drain();
  });
}

Deno.test("while a worker drains a backlog held in memory, timers have their turn", async () => {
  const items = 20_000;
  const ranAt = [0];
  let ticking: ReturnType<typeof setInterval> | undefined;
  await drain({ items, capacity: 1_000 }, (ran) => {
    ticking = setInterval(() => ranAt.push(ran()), 10);
  });
  clearInterval(ticking);
  ranAt.push(items);
  const steps = ranAt.slice(1).map((ran, n) => ran - (ranAt[n] ?? 0));
  const most = Math.max(...steps);
  assert.ok(most <= MOST_IN_A_TURN, `${most} of ${items} items ran between two ticks of a timer: ${steps}`);
});

Deno.test("while a worker of fewer slots drains a backlog held in memory, sockets have their turn", async () => {
  const items = 10_000;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response("here"));
  const under = Promise.withResolvers<void>();
  let handled = 0;
  const handle = () => {
    // Asked in the middle of a turn: what is asked in a rest is answered in it.
    if (++handled === items / 10) under.resolve();
    // Some work each, so that the backlog lasts on a fast machine too.
    const untilMs = performance.now() + 0.1;
    while (performance.now() < untilMs);
  };
  let ranMeanwhile = items;
  await drain({ items, capacity: 50, handle }, async (ran) => {
    await under.promise;
    const before = ran();
    await (await fetch(`http://127.0.0.1:${server.addr.port}`)).text();
    ranMeanwhile = ran() - before;
  });
  await server.shutdown();
  assert.ok(ranMeanwhile <= items / 5, `${ranMeanwhile} of ${items} items ran before a request was answered`);
});
