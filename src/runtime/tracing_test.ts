import assert from "node:assert/strict";
import { linkOf } from "./tracing.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

Deno.test("linkOf() reads trace, span and flags of a traceparent, of later versions too", () => {
  for (const text of [`00-${TRACE}-${SPAN}-01`, `cc-${TRACE}-${SPAN}-01-what-the-future-holds`]) {
    assert.deepEqual(linkOf(text)?.context, { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true }, text);
  }
  assert.equal(linkOf(`00-${TRACE}-${SPAN}-00`)?.context.traceFlags, 0);
});

Deno.test("linkOf() links to nothing where there is no trace", () => {
  const none = [
    null,
    "",
    "garbage",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
    ` 00-${TRACE}-${SPAN}-01`,
  ];
  for (const text of none) assert.equal(linkOf(text), null, String(text));
});
