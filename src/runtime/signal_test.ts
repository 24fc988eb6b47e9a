import assert from "node:assert/strict";
import { settlePromises } from "../core/fake_clock.ts";
import { Signal } from "./signal.ts";

Deno.test("a signal wakes all who wait, and the next one when nobody did, once", async () => {
  const signal = new Signal();
  const never = new AbortController().signal;
  const woken: string[] = [];
  void signal.wait(never).then(() => woken.push("a"));
  void signal.wait(never).then(() => woken.push("b"));
  signal.fire();
  await settlePromises();
  assert.deepEqual(woken, ["a", "b"]);
  signal.fire();
  signal.fire();
  await signal.wait(never);
  void signal.wait(never).then(() => woken.push("late"));
  await settlePromises();
  assert.deepEqual(woken, ["a", "b"], "fired twice is fired once");
});

Deno.test("a wait ends when it is stopped, and leaves no listener behind", async () => {
  const signal = new Signal();
  const stop = new AbortController();
  const waited = signal.wait(stop.signal);
  stop.abort();
  await waited;
  await signal.wait(stop.signal);
  signal.fire();
  await signal.wait(new AbortController().signal);
});
