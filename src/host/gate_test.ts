import assert from "node:assert/strict";
// Noon is the database's time at the start of each test, a year off the host's own clock.
import { NOON, ROW } from "../../tests/support/host_row.ts";
import { UnavailableError, ValidationError } from "../core/errors.ts";
import { FakeClock } from "../core/fake_clock.ts";
import type { LogFields, Logger } from "../core/log.ts";
import { DatabaseTime } from "./database_time.ts";
import { HostGate } from "./gate.ts";
import { isAllowance } from "./policy_rules.ts";
import { KeyRefusedError } from "./rest_key.ts";
import type { AttemptRecord, ClaimAllowance, ClaimRefusal, HostApi, HostBeat, HostRow } from "./types.ts";

const POLL_MS = 30_000;

/** The host's rows in the test's hands. */
class FakeApi implements HostApi {
  row: HostRow | null = ROW;
  inFlight = 0;
  failing = { beat: null as Error | null, count: null as Error | null, read: null as Error | null };
  readonly beats: (number | null)[] = [];
  readonly time: DatabaseTime;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
    this.time = new DatabaseTime(clock);
  }

  beat(currentWorkers: number | null): Promise<HostBeat | null> {
    if (this.failing.beat !== null) return Promise.reject(this.failing.beat);
    this.beats.push(currentWorkers);
    if (this.row === null) return Promise.resolve(null);
    const monotonicMs = this.#clock.monotonic();
    this.time.note(NOON + monotonicMs);
    return Promise.resolve({ row: this.row, databaseMs: NOON + monotonicMs, answeredMonotonicMs: monotonicMs });
  }

  read(): Promise<HostRow | null> {
    return this.failing.read === null ? Promise.resolve(this.row) : Promise.reject(this.failing.read);
  }

  countInFlight(): Promise<number> {
    return this.failing.count === null ? Promise.resolve(this.inFlight) : Promise.reject(this.failing.count);
  }

  recordAttempt(_attempt: AttemptRecord): Promise<void> {
    return Promise.resolve();
  }
}

interface World {
  readonly clock: FakeClock;
  readonly api: FakeApi;
  readonly gate: HostGate;
  readonly lines: { readonly level: string; readonly event: string; readonly fields: LogFields }[];
  readonly notices: string[];
  /** How often it was said that there may be room again. */
  readonly rooms: number[];
}

function world(): World {
  // The host's own wall clock is a year behind: nothing may depend on it.
  const clock = new FakeClock(Date.UTC(2025, 0, 1));
  const api = new FakeApi(clock);
  const lines: World["lines"] = [];
  const notices: string[] = [];
  const rooms: number[] = [];
  const at = (level: string) => (event: string, fields: LogFields = {}) => void lines.push({ level, event, fields });
  const logger: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const gate = new HostGate({
    ...{
      api,
      time: api.time,
      onRoom: () => void rooms.push(1),
      host: "wsl1",
      lane: "default",
      kinds: ["DEV_ISSUE"],
      pollMs: POLL_MS,
      clock,
      logger,
      random: () => 0,
    },
    notifier: { notify: (cause) => void notices.push(cause), close: () => Promise.resolve() },
  });
  return { clock, api, gate, lines, notices, rooms };
}

function reasonOf(answer: ClaimAllowance | ClaimRefusal): string {
  return isAllowance(answer) ? `up to ${answer.limit}` : answer.reason;
}

function told({ lines }: World): string[] {
  return lines.filter(({ level }) => level !== "debug").map(({ event, fields }) =>
    `${event}${fields.reason === undefined ? "" : ` ${fields.reason}`}`
  );
}

async function running(use: (world: World) => Promise<void>): Promise<void> {
  const it = world();
  const stop = new AbortController();
  const run = it.gate.run(stop.signal);
  try {
    await it.clock.tick(0);
    await use(it);
  } finally {
    stop.abort();
    await it.clock.tick(0);
    await run;
  }
}

Deno.test("the heartbeat is written every poll, idle or busy, with the count of the moment", async () => {
  await running(async ({ clock, api }) => {
    api.inFlight = 2;
    await clock.tick(POLL_MS);
    api.inFlight = 1;
    await clock.tick(POLL_MS);
    assert.deepEqual(api.beats, [0, 2, 1]);
  });
});

Deno.test("the kill switch is noticed within one poll, and so is its being set back; each is one line", async () => {
  await running(async (it) => {
    const { clock, api, gate } = it;
    assert.equal(reasonOf(await gate.allow(10)), "up to 2");
    api.row = { ...ROW, enabled: false };
    await clock.tick(POLL_MS);
    for (let asked = 0; asked < 5; asked++) assert.equal(reasonOf(await gate.allow(10)), "disabled");
    await clock.tick(POLL_MS * 3);
    api.row = ROW;
    await clock.tick(POLL_MS);
    for (let asked = 0; asked < 5; asked++) assert.equal(reasonOf(await gate.allow(10)), "up to 2");
    assert.deepEqual(told(it), ["host.claims", "host.claims_nothing disabled", "host.claims"]);
  });
});

Deno.test("a runner that is full and asks for nothing says that it was switched off", async () => {
  await running(async (it) => {
    it.api.row = { ...ROW, enabled: false };
    await it.clock.tick(POLL_MS);
    assert.deepEqual(told(it), ["host.claims_nothing disabled"]);
  });
});

Deno.test("a claim whose read of the row is older than a poll reads it anew first", async () => {
  const { clock, api, gate } = world();
  assert.equal(reasonOf(await gate.allow(1)), "up to 1");
  api.row = { ...ROW, enabled: false };
  assert.equal(reasonOf(await gate.allow(1)), "up to 1", "read within the poll");
  await clock.tick(POLL_MS + 1);
  assert.equal(reasonOf(await gate.allow(1)), "disabled");
});

Deno.test("a server slower than the poll is no outage: the read that a claim asked for is what it goes by", async () => {
  const { clock, api, gate } = world();
  const beat = api.beat.bind(api);
  api.beat = async (count) => {
    const answer = await beat(count);
    await clock.sleep(POLL_MS * 2);
    return answer;
  };
  const asked = gate.allow(1);
  await clock.tick(POLL_MS * 2);
  assert.equal(reasonOf(await asked), "up to 1");
});

Deno.test("the cap goes by a count made for each claim, and is no line of the log", async () => {
  const it = world();
  const answers: string[] = [];
  for (const inFlight of [0, 1, 2, 1]) {
    it.api.inFlight = inFlight;
    answers.push(reasonOf(await it.gate.allow(10)));
  }
  assert.deepEqual(answers, ["up to 2", "up to 1", "at-cap", "up to 1"]);
  assert.deepEqual(told(it), ["host.claims"]);
});

Deno.test("without a count nothing is claimed, as the cap might be passed", async () => {
  const { api, gate } = world();
  api.failing.count = new UnavailableError("the gateway answered 503", "not-executed");
  await assert.rejects(gate.allow(1), UnavailableError);
});

Deno.test("no row claims nothing, and a row that appears is taken up", async () => {
  await running(async (it) => {
    const { clock, api, gate } = it;
    api.row = null;
    await clock.tick(POLL_MS);
    assert.equal(reasonOf(await gate.allow(1)), "no-row");
    await clock.tick(POLL_MS * 5);
    api.row = ROW;
    await clock.tick(POLL_MS);
    assert.equal(reasonOf(await gate.allow(1)), "up to 1");
    assert.deepEqual(told(it), ["host.claims_nothing no-row", "host.claims"]);
  });
});

Deno.test("a host without a row from the start claims nothing, without an outage being told", async () => {
  const { api, gate } = world();
  api.row = null;
  assert.equal(reasonOf(await gate.allow(1)), "no-row");
});

Deno.test("a row that cannot be read claims nothing and says which field is wrong", async () => {
  const { api, gate } = world();
  api.failing.beat = api.failing.read = new ValidationError("windows.0.from", "Cannot read the host's windows.0.from");
  const answer = await gate.allow(1);
  assert.equal(reasonOf(answer), "no-row");
  assert.match("said" in answer ? answer.said : "", /windows\.0\.from/);
});

Deno.test("losing the heartbeat's write stops no work: the row alone is read, and leases go by the time known", async () => {
  await running(async (it) => {
    const { clock, api, gate, notices } = it;
    api.failing.beat = new UnavailableError("the gateway answered 500", "unknown");
    await clock.tick(POLL_MS * 3);
    assert.equal(reasonOf(await gate.allow(10)), "up to 2");
    assert.equal(api.time.now(), NOON + POLL_MS * 3);
    api.row = { ...ROW, enabled: false };
    await clock.tick(POLL_MS);
    assert.equal(reasonOf(await gate.allow(10)), "disabled", "the kill switch is seen all the same");
    api.failing.beat = null;
    await clock.tick(POLL_MS);
    assert.deepEqual(told(it), [
      "host.heartbeat_failed",
      "host.claims",
      "host.claims_nothing disabled",
      "host.heartbeat_back",
    ]);
    assert.ok(notices.length > 0 && notices.every((cause) => cause === "heartbeat failed"));
  });
});

Deno.test("a heartbeat that is refused from the start claims nothing and says so: leases need the database's time", async () => {
  const it = world();
  it.api.failing.beat = new KeyRefusedError("Cannot PATCH /hosts: the server answered 403", "not-executed");
  await assert.rejects(it.gate.allow(1), /heartbeat, which alone tells the database's time.*has never been written/);
  it.api.time.note(NOON);
  assert.equal(reasonOf(await it.gate.allow(1)), "up to 1", "once it is known the heartbeat is but accounting");
  assert.deepEqual(it.notices, [], "the key ring has told it");
});

Deno.test("losing the count for the accounting leaves the heartbeat written, without it", async () => {
  await running(async ({ clock, api }) => {
    api.failing.count = new UnavailableError("the gateway answered 503", "not-executed");
    await clock.tick(POLL_MS);
    assert.deepEqual(api.beats, [0, null]);
  });
});

Deno.test("while the row cannot be reached, a claim fails as an outage once the last read is a poll old", async () => {
  await running(async (it) => {
    const { clock, api, gate } = it;
    const away = new UnavailableError("no answer", "unknown");
    Object.assign(api.failing, { beat: away, read: away, count: away });
    await clock.tick(POLL_MS * 2);
    await assert.rejects(gate.allow(1), (error) => {
      assert.ok(error instanceof UnavailableError);
      assert.equal(error.cause, away);
      return true;
    });
    assert.deepEqual(told(it), ["host.count_failed", "host.heartbeat_failed"], "one line each, not one a poll");
    assert.deepEqual(it.notices, [], "the claims tell of the outage");
  });
});

Deno.test("windows go by the database's time and not by the host's clock", async () => {
  await running(async (it) => {
    const { clock, gate, lines } = it;
    clock.jumpWall(8 * 3_600_000);
    assert.equal(reasonOf(await gate.allow(1)), "up to 1");
    // Six hours of polls: 18:00 by the database.
    await clock.tick(6 * 3_600_000);
    assert.equal(reasonOf(await gate.allow(1)), "window-closed");
    const line = lines.findLast(({ event }) => event === "host.claims_nothing");
    assert.equal(line?.fields.opensAt, "2026-06-03T08:00:00.000Z");
  });
});

Deno.test("where the cap held a claim back, an item that ended makes room at once, not at the next poll", async () => {
  const { api, gate, rooms } = world();
  await gate.allow(2);
  gate.settled();
  assert.equal(rooms.length, 0, "nothing was held back");
  await gate.allow(10);
  gate.settled();
  gate.settled();
  assert.equal(rooms.length, 1, "told once a claim");
  api.inFlight = 2;
  await gate.allow(1);
  gate.settled();
  assert.equal(rooms.length, 2);
});

Deno.test("what two runners claimed at once above the cap is told as excess", async () => {
  const { api, gate } = world();
  await gate.allow(2);
  api.inFlight = 4;
  assert.equal(await gate.excess(2), 2);
  assert.equal(await gate.excess(1), 1, "no more than was claimed here");
  api.inFlight = 2;
  assert.equal(await gate.excess(2), 0);
  api.failing.count = new UnavailableError("no answer", "unknown");
  assert.equal(await gate.excess(2), 0);
});
