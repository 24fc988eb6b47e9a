import assert from "node:assert/strict";
import { checkTruth, LeftOutError, MismatchError } from "./drain.ts";
import { refuseWithoutDurability } from "./server.ts";
import { countFinished, type Query } from "./truth.ts";

const KEEPS = { id: "pgboss", family: "pgboss", retention: "keep" } as const;
const DELETES = { id: "graphile", family: "graphile", retention: "delete" } as const;
const OURS_DELETES = { id: "laneway-drop", family: "laneway", retention: "delete" } as const;

const truth = (counts: Partial<{ left: number; finished: number; failed: number }>, ran: number[] = [10, 10]) => ({
  items: 10,
  counts: { left: 0, finished: 10, failed: 0, ...counts },
  runs: ran[0] ?? 0,
  once: ran[1] ?? 0,
});

Deno.test("a drain that the database agrees with is accepted, by its class", () => {
  checkTruth(KEEPS, truth({}));
  checkTruth(DELETES, truth({ finished: 0 }));
});

Deno.test("items left, failed, lost, run twice or not kept make a figure void", () => {
  const wrong: readonly (readonly [Parameters<typeof checkTruth>[1], RegExp])[] = [
    [truth({ left: 1, finished: 9 }), /1 items are left/],
    [truth({ failed: 2, finished: 8 }), /2 items failed/],
    [truth({}, [9, 9]), /9 handlers ran/],
    [truth({}, [10, 9]), /9 ids ran exactly once/],
    [truth({ finished: 9 }), /9 finished rows are kept where 10 should be/],
  ];
  for (const [found, message] of wrong) {
    assert.throws(
      () => checkTruth(KEEPS, found),
      (error) => error instanceof MismatchError && message.test(error.message),
    );
  }
  assert.throws(() => checkTruth(DELETES, truth({ finished: 10 })), MismatchError);
});

Deno.test("a build of ours that keeps rows where it was told to keep none is left out, not called deleting", () => {
  assert.throws(() => checkTruth(OURS_DELETES, truth({ finished: 10 })), LeftOutError);
  assert.throws(() => checkTruth(OURS_DELETES, truth({ left: 1, finished: 9 })), MismatchError);
});

Deno.test("finished items are counted where they are, also in a table of their own", async () => {
  const answer = (apart: boolean): Query => (sql) => {
    if (sql.includes("to_regclass")) return Promise.resolve([{ apart }]);
    if (sql.includes("queue.work_history")) return Promise.resolve([{ left: 0, finished: "7", failed: 0 }]);
    return Promise.resolve([{ left: "3", finished: "2", failed: "1" }]);
  };
  assert.deepEqual(await countFinished(answer(false), "laneway"), { left: 3, finished: 2, failed: 1 });
  assert.deepEqual(await countFinished(answer(true), "laneway"), { left: 3, finished: 9, failed: 1 });
});

Deno.test("a server that is not fully durable is refused, naming the setting", () => {
  const durable = { fsync: "on", full_page_writes: "on", synchronous_commit: "on" };
  refuseWithoutDurability(durable);
  for (const name of Object.keys(durable)) {
    assert.throws(() => refuseWithoutDurability({ ...durable, [name]: "off" }), new RegExp(`${name} off`));
  }
  assert.throws(() => refuseWithoutDurability({}), /fsync undefined/);
});
