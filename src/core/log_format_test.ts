import assert from "node:assert/strict";
import fc from "fast-check";
import { formatJson, formatText, type LogEvent } from "./log_format.ts";

const EVENT: LogEvent = { atMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6), level: "warn", event: "item.failed", fields: {} };

Deno.test("formatJson() is one JSON line that starts with time, level and event", () => {
  const line = formatJson({ ...EVENT, fields: { kind: "A", n: 3, ok: true, none: null, gone: undefined } });
  assert.equal(
    line,
    '{"ts":"2026-01-02T03:04:05.006Z","level":"warn","event":"item.failed","kind":"A","n":3,"ok":true,"none":null}',
  );
});

Deno.test("formatJson() lets no field replace time, level or event", () => {
  const line = JSON.parse(formatJson({ ...EVENT, fields: { ts: "x", level: "y", event: "z", n: NaN } }));
  assert.deepEqual([line.level, line.event, line.level_, line.event_, line.ts_, line.n], [
    "warn",
    "item.failed",
    "y",
    "z",
    "x",
    "NaN",
  ]);
});

Deno.test("whatever a field holds, each format stays one line without control characters", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (text, name) => {
    const event = { ...EVENT, event: text, fields: { [name === "__proto__" ? "p" : name || "n"]: text } };
    assert.doesNotThrow(() => JSON.parse(formatJson(event)));
    assert.equal(/\n/.test(formatJson(event)), false);
    const plain = formatText({ ...event, fields: { value: text } }, false);
    assert.equal(/\p{Cc}/u.test(plain), false);
  }));
});

Deno.test("formatText() colors only when told to", () => {
  assert.equal(formatText({ ...EVENT, fields: { a: "b c" } }, true).includes("\x1b["), true);
  assert.match(
    formatText({ ...EVENT, fields: { a: "b c" } }, false),
    /^\d\d:\d\d:\d\d\.006 WARN {2}item\.failed a="b c"$/,
  );
});
