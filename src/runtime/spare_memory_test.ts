import assert from "node:assert/strict";
import { FakeClock } from "../core/fake_clock.ts";
import { giveBackOnce } from "./spare_memory.ts";

function rig() {
  const clock = new FakeClock();
  const stop = new AbortController();
  const state = { busy: false, collected: 0 };
  const ended = giveBackOnce({
    clock,
    stop: stop.signal,
    isBusy: () => state.busy,
    collect: () => void state.collected++,
  });
  return { clock, stop, state, ended };
}

Deno.test("memory is given back once, when the worker is first seen idle", async () => {
  const { clock, state, ended } = rig();
  state.busy = true;
  await clock.tick(60_000);
  assert.equal(state.collected, 0);
  state.busy = false;
  await clock.tick(5_000);
  assert.equal(state.collected, 1);
  await ended;
  await clock.tick(60_000);
  assert.equal(state.collected, 1);
});

Deno.test("a worker told to stop collects nothing", async () => {
  const { stop, state, ended } = rig();
  stop.abort();
  await ended;
  assert.equal(state.collected, 0);
});

Deno.test("without the engine's collector nothing is waited for", async () => {
  await giveBackOnce({ clock: new FakeClock(), stop: new AbortController().signal, isBusy: () => true });
});
