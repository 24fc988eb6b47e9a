import assert from "node:assert/strict";
import { NOON, ROW } from "../../tests/support/host_row.ts";
import { UnavailableError } from "../core/errors.ts";
import { FakeClock } from "../core/fake_clock.ts";
import { checkRow, checkSweeper } from "./check_row.ts";
import type { ProbeAnswer } from "./rest_probe.ts";
import type { HostApi, HostRow } from "./types.ts";

const FACTS = { host: "wsl1", lane: "default", kinds: ["DEV_ISSUE"] };

async function statesOf(
  row: HostRow | null | Error,
  { kinds = FACTS.kinds, wallMs = NOON, databaseMs = NOON }: {
    kinds?: string[];
    wallMs?: number;
    databaseMs?: number;
  } = {},
): Promise<string[]> {
  const clock = new FakeClock(wallMs);
  const api: HostApi = {
    beat() {
      if (row instanceof Error) return Promise.reject(row);
      return Promise.resolve(row === null ? null : { row, databaseMs, answeredMonotonicMs: clock.monotonic() });
    },
    read: () => Promise.reject(new Error("not asked")),
    countInFlight: () => Promise.resolve(0),
    recordAttempt: () => Promise.reject(new Error("not asked")),
  };
  const { checks } = await checkRow(api, { ...FACTS, kinds }, clock);
  return checks.map(({ name, state, said }) => `${state} ${name}: ${said}`);
}

Deno.test("a row that lets the runner work is shown with all it allows", async () => {
  const [row, clock, ...more] = await statesOf(ROW);
  assert.match(row ?? "", /^ok host row: 1 org, kinds DEV_ISSUE, weights light.*day \(08:00–18:00 UTC\) up to 2$/);
  assert.match(clock ?? "", /^ok clock/);
  assert.deepEqual(more, []);
});

Deno.test("a row that is switched off, as new ones are, is no failure", async () => {
  assert.match((await statesOf({ ...ROW, enabled: false }))[0] ?? "", /^warn host row: host wsl1 is switched off/);
});

Deno.test("outside its windows a host is told when the next one opens", async () => {
  const [row] = await statesOf(ROW, { databaseMs: NOON + 8 * 3_600_000, wallMs: NOON + 8 * 3_600_000 });
  assert.match(row ?? "", /^warn .*opens at 2026-06-03T08:00:00/);
});

const FAILS: readonly (readonly [what: string, row: HostRow | null | Error, says: RegExp])[] = [
  ["no row", null, /no row wsl1/],
  ["no answer", new UnavailableError("the gateway answered 503", "unknown"), /cannot be read.*503/],
  ["no windows", { ...ROW, windows: [] }, /has no windows/],
  ["windows that never allow anything", { ...ROW, windows: [{ ...ROW.windows[0], maxInFlight: 0 } as never] }, /caps/],
  ["no org", { ...ROW, orgIds: [] }, /org_ids/],
  ["another lane", { ...ROW, lane: "express" }, /--lane express/],
];

for (const [what, row, says] of FAILS) {
  Deno.test(`a host that could never claim fails the check: ${what}`, async () => {
    const [first] = await statesOf(row);
    assert.match(first ?? "", /^fail host row/);
    assert.match(first ?? "", says);
  });
}

Deno.test("kinds without a command, and commands that are never claimed, are warned of", async () => {
  const lines = await statesOf({ ...ROW, kinds: ["DEV_ISSUE", "ROTATE"] }, { kinds: ["DEV_ISSUE", "REVIEW_PR"] });
  assert.match(lines[1] ?? "", /^warn kinds: ROTATE may be claimed and has no command/);
  assert.match(lines[2] ?? "", /^warn kinds: REVIEW_PR has a command here/);
});

Deno.test("a clock that is off is warned of, with its direction", async () => {
  assert.match((await statesOf(ROW, { wallMs: NOON - 90_000 }))[1] ?? "", /^warn clock: .*90000 ms ahead/);
});

Deno.test("somebody must sweep: within five minutes, by the database's time", async () => {
  const swept = (body: unknown, status = 200) =>
    checkSweeper(
      () => Promise.resolve<ProbeAnswer>({ status, code: null, message: "", body, server: null }),
      NOON,
    );
  const at = (agoMs: number) => [{ last_run_at: new Date(NOON - agoMs).toISOString() }];
  const answers = [await swept(at(8_000)), await swept(at(301_000)), await swept([]), await swept(null, 403)];
  assert.deepEqual(answers.map(({ state }) => state), ["ok", "fail", "fail", "fail"]);
  assert.match(answers[0]?.said ?? "", /8 s ago/);
  assert.match(answers[2]?.said ?? "", /ever swept.*maintenance/);
});
