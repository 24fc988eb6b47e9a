import assert from "node:assert/strict";
import type { WorkHandler } from "../work/types.ts";
import { checkKinds, chooseHandlers } from "./kinds.ts";
import { UsageError } from "./usage_error.ts";

function handler(name: string): WorkHandler {
  return { kind: { name } as WorkHandler["kind"], handle: () => {} };
}

Deno.test("checkKinds() refuses an unknown kind, naming the one that was meant and all that are known", () => {
  assert.doesNotThrow(() => checkKinds(null, []));
  assert.throws(
    () => checkKinds(["NOTIFY_SHIPMNT"], ["NOTIFY_SHIPMENT", "OTHER"]),
    (error) =>
      error instanceof UsageError && /did you mean NOTIFY_SHIPMENT\?.*NOTIFY_SHIPMENT, OTHER/.test(error.message),
  );
});

Deno.test("chooseHandlers() takes all by default, those asked for otherwise", () => {
  const handlers = [handler("A"), handler("B")];
  assert.deepEqual(chooseHandlers(null, handlers), handlers);
  assert.deepEqual(chooseHandlers(["B"], handlers), [handlers[1]].map((one) => one));
  assert.throws(() => chooseHandlers(["C"], handlers), /--kind C: it has no handler here.*A, B/);
  assert.throws(() => chooseHandlers(null, []), UsageError);
  assert.throws(() => chooseHandlers(null, [handler("A"), handler("A")]), /Two handlers/);
});
