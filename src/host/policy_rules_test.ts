import assert from "node:assert/strict";
import { decideClaim, excessOf, isAllowance, type PolicyFacts } from "./policy_rules.ts";
import type { HostRow, HostWindow } from "./types.ts";

const DAY: HostWindow = {
  name: "day",
  timeZone: "UTC",
  days: [],
  from: "08:00",
  to: "18:00",
  maxInFlight: 3,
  weights: null,
};
const ROW: HostRow = {
  name: "wsl1",
  enabled: true,
  orgIds: ["a"],
  kinds: ["DEV_ISSUE", "REVIEW_PR"],
  weights: ["super-light", "light"],
  priorityFloor: 5,
  lane: "default",
  windows: [DAY],
  lastHeartbeatAt: null,
  currentWorkers: 0,
};
const FACTS: PolicyFacts = {
  host: "wsl1",
  row: ROW,
  atMs: Date.parse("2026-06-01T12:00:00Z"),
  kinds: ["DEV_ISSUE", "OTHER"],
  lane: "default",
  inFlight: 0,
  limit: 10,
};

Deno.test("an enabled host in a window may claim what its row, its window and its commands share", () => {
  assert.deepEqual(decideClaim(FACTS), {
    limit: 3,
    orgIds: ["a"],
    kinds: ["DEV_ISSUE"],
    weights: ["super-light", "light"],
    priorityFloor: 5,
    host: "wsl1",
  });
});

Deno.test("what is in flight, whichever runner holds it, leaves the rest of the cap, and no more than there is room for", () => {
  const limits = [0, 1, 2].map((inFlight) => {
    const answer = decideClaim({ ...FACTS, inFlight });
    return isAllowance(answer) ? answer.limit : answer.reason;
  });
  assert.deepEqual(limits, [3, 2, 1]);
  const answer = decideClaim({ ...FACTS, limit: 1 });
  assert.equal(isAllowance(answer) && answer.limit, 1);
});

Deno.test("a window narrows the weights and never adds one", () => {
  const windows = [{ ...DAY, weights: ["light", "heavy"] }];
  const answer = decideClaim({ ...FACTS, row: { ...ROW, windows } });
  assert.deepEqual(isAllowance(answer) && answer.weights, ["light"]);
});

const REFUSED: readonly (readonly [what: string, facts: Partial<PolicyFacts>, reason: string, says: RegExp])[] = [
  ["no row", { row: null }, "no-row", /no row wsl1/],
  ["switched off", { row: { ...ROW, enabled: false } }, "disabled", /enabled/],
  ["no window", { row: { ...ROW, windows: [] } }, "no-window", /00:00 to 00:00/],
  ["outside its windows", { atMs: Date.parse("2026-06-01T19:00:00Z") }, "window-closed", /no window/],
  ["in a window of cap 0", { row: { ...ROW, windows: [{ ...DAY, maxInFlight: 0 }] } }, "window-closed", /day \(08:00/],
  ["at its cap", { inFlight: 3 }, "at-cap", /3 of 3/],
  ["above its cap, which was lowered", { inFlight: 4 }, "at-cap", /4 of 3/],
  ["no org", { row: { ...ROW, orgIds: [] } }, "nothing-allowed", /org_ids/],
  ["no kind", { row: { ...ROW, kinds: [] } }, "nothing-allowed", /none of the kinds/],
  ["kinds without a command", { kinds: ["OTHER"] }, "nothing-allowed", /OTHER.*command/],
  ["no weight", { row: { ...ROW, weights: [] } }, "nothing-allowed", /weight/],
  [
    "a window of other weights",
    {
      row: { ...ROW, windows: [{ ...DAY, weights: ["heavy"] }] },
    },
    "nothing-allowed",
    /weight/,
  ],
  ["another lane", { row: { ...ROW, lane: "express" } }, "nothing-allowed", /--lane express/],
];

for (const [what, facts, reason, says] of REFUSED) {
  Deno.test(`nothing may be claimed, and it is said why: ${what}`, () => {
    const answer = decideClaim({ ...FACTS, ...facts });
    assert.ok(!isAllowance(answer));
    assert.equal(answer.reason, reason);
    assert.match(answer.said, says);
  });
}

Deno.test("what is above the cap is the excess", () => {
  const inFlight = [2, 3, 4, 9].map((count) => excessOf(ROW, FACTS.atMs, count));
  assert.deepEqual(inFlight, [0, 0, 1, 6]);
  assert.equal(excessOf(null, FACTS.atMs, 4), 0);
});
