import assert from "node:assert/strict";
import { describeError } from "../core/describe_error.ts";
import type { Logger } from "../core/log.ts";
import { noticingLogger } from "./noticing_logger.ts";
import { KeyRefusedError } from "./rest_key.ts";

function world() {
  const logged: string[] = [];
  const told: (readonly [cause: string, text: string])[] = [];
  const line = (level: string) => (event: string) => void logged.push(`${level} ${event}`);
  const inner: Logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const notifier = {
    notify: (cause: string, text: string) => void told.push([cause, text]),
    close: () => Promise.resolve(),
  };
  return { logger: noticingLogger(inner, notifier), logged, told };
}

Deno.test("an error is logged, and people are told of it by its event", () => {
  const { logger, logged, told } = world();
  logger.error("work.outcome_not_written", { item: "i-1", kind: "DEV_ISSUE", error: "broken", gone: undefined });
  assert.deepEqual(logged, ["error work.outcome_not_written"]);
  assert.deepEqual(told, [[
    "work.outcome_not_written",
    "work.outcome_not_written\nitem: i-1\nkind: DEV_ISSUE\nerror: broken",
  ]]);
});

Deno.test("a server out of reach is told; a lost race, a failed command and a drain are not", () => {
  const { logger, logged, told } = world();
  logger.warn("database.out_of_reach", { error: "no answer" });
  logger.warn("work.outcome_refused", { item: "i-1" });
  logger.warn("host.command_failed", { item: "i-1" });
  logger.info("worker.draining");
  logger.debug("host.claims_nothing");
  assert.equal(logged.length, 5, "each is logged");
  assert.deepEqual(told.map(([cause]) => cause), ["database.out_of_reach"]);
});

Deno.test("what its writer has told already is not told twice", () => {
  const { logger, told } = world();
  logger.error("host.key_refused", { error: "401" });
  logger.warn("database.out_of_reach", { error: describeError(new KeyRefusedError("refused", "not-executed")) });
  assert.deepEqual(told, []);
});

Deno.test("a long field is bounded", () => {
  const { logger, told } = world();
  logger.error("x", { error: "e".repeat(10_000) });
  assert.ok((told[0]?.[1].length ?? 0) < 600);
});
