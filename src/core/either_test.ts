import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { eitherOf } from "./either.ts";

Deno.test("either of two signals aborts with the first of them, and with its reason", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const { signal } = eitherOf(first.signal, undefined, second.signal);
  assert.equal(signal.aborted, false);
  second.abort("the second");
  first.abort("the first");
  assert.equal(signal.reason, "the second");
});

Deno.test("either of two signals, one of which has aborted, is aborted from the start", () => {
  const { signal } = eitherOf(new AbortController().signal, AbortSignal.abort("before"));
  assert.equal(signal.reason, "before");
});

Deno.test("a long-lived signal keeps no listener of a wait that is over", () => {
  const [longLived, other] = [new AbortController(), new AbortController()];
  {
    using either = eitherOf(longLived.signal, other.signal);
    assert.equal(getEventListeners(longLived.signal, "abort").length, 1);
    assert.equal(either.signal.aborted, false);
  }
  assert.equal(getEventListeners(longLived.signal, "abort").length, 0);
  eitherOf(longLived.signal, other.signal);
  other.abort();
  assert.equal(getEventListeners(longLived.signal, "abort").length, 0);
});

// A collection can only be asked for in a process started with the flag that offers it.
Deno.test("either of two signals survives a collection while only a listener holds it", async () => {
  const module = new URL("./either.ts", import.meta.url).href;
  const script = `
    import { eitherOf } from ${JSON.stringify(module)};
    const stop = new AbortController();
    let told = false;
    function listen() {
      eitherOf(stop.signal, new AbortController().signal).signal.addEventListener("abort", () => told = true);
    }
    listen();
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      globalThis.gc({ type: "major", execution: "sync", flavor: "last-resort" });
    }
    stop.abort();
    console.log(told ? "told" : "collected");
  `;
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(file, script);
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--v8-flags=--expose-gc", "--no-check", file],
      stdin: "null",
      stderr: "inherit",
    }).output();
    assert.equal(new TextDecoder().decode(stdout).trim(), "told");
  } finally {
    await Deno.remove(file);
  }
});
