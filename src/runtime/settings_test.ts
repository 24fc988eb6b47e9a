import assert from "node:assert/strict";
import fc from "fast-check";
import { formatDuration, parseDuration } from "../core/duration.ts";
import { envName, FLAG_ENTRIES, type FlagKey, FLAGS } from "./flags.ts";
import { parseFlag, parseSize } from "./flag_values.ts";
import { describeDefault, readSettings, requireStore, type Settings } from "./settings.ts";
import { UsageError } from "./usage_error.ts";

function read(flags: Partial<Record<FlagKey, string>> = {}, env: Record<string, string> = {}): Settings {
  return readSettings({ flags, env });
}

const POSTGRES = {
  LANEWAY_DATABASE_URL: "postgres://runtime:pw@db/x",
  LANEWAY_SYSTEM_DATABASE_URL: "postgres://system:pw@db/x",
};

Deno.test("the defaults are the documented ones, and every default lies in its own range", () => {
  const settings = read();
  assert.deepEqual(
    [settings.capacity, settings.leaseMs, settings.pollMs, settings.heartbeatMs, settings.sweepMs],
    [10, 30_000, 1_000, 5_000, 10_000],
  );
  assert.deepEqual(
    [settings.drainGraceMs, settings.itemRetentionMs, settings.keyRetentionMs, settings.payloadLimitBytes],
    [10_000, 7 * 86_400_000, 7 * 86_400_000, 262_144],
  );
  assert.deepEqual([settings.httpHost, settings.httpPort, settings.store], ["127.0.0.1", 9464, null]);
  for (const [, spec] of FLAG_ENTRIES) {
    if (spec.default !== null) assert.doesNotThrow(() => parseFlag(spec, describeDefault(spec), spec.flag));
  }
});

Deno.test("a flag goes before its variable, which goes before the default; an empty variable is unset", () => {
  assert.equal(read({ leaseMs: "2s" }, { LANEWAY_LEASE: "3s" }).leaseMs, 2_000);
  assert.equal(read({}, { LANEWAY_LEASE: "3s" }).leaseMs, 3_000);
  assert.equal(read({}, { LANEWAY_LEASE: "" }).leaseMs, 30_000);
});

Deno.test("an error names what the person wrote, flag or variable, with value and range", () => {
  assert.throws(() => read({ capacity: "0" }), {
    message: 'Cannot use --capacity "0": it must be a whole number from 1 to 2000',
  });
  assert.throws(() => read({}, { LANEWAY_CAPACITY: "many" }), /LANEWAY_CAPACITY "many".*1 to 2000/);
  assert.throws(() => read({ leaseMs: "30" }), /--lease "30".*unit/);
  assert.throws(() => read({ leaseMs: "10ms" }), /--lease "10ms": it must lie between 1s and 1h/);
  assert.throws(() => read({ kinds: "notify" }), /--kind "notify".*upper snake case/);
});

Deno.test("whatever is written, reading it gives a value in range or a one-line UsageError that names the flag", () => {
  const anything = fc.oneof(
    fc.string(),
    fc.integer().map(String),
    fc.nat().map((n) => `${n}s`),
    fc.double().map(String),
  );
  fc.assert(fc.property(fc.constantFrom(...FLAG_ENTRIES), anything, ([, spec], text) => {
    try {
      const value = parseFlag(spec, text, `--${spec.flag}`);
      if (spec.type === "int") assert.ok(Number(value) >= spec.min && Number(value) <= spec.max);
      if (spec.type === "duration") {
        assert.ok(Number(value) >= parseDuration(spec.min, "min") && Number(value) <= parseDuration(spec.max, "max"));
      }
      if (spec.type === "size") {
        assert.ok(Number(value) >= parseSize(spec.min, "min") && Number(value) <= parseSize(spec.max, "max"));
      }
    } catch (error) {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.includes(`--${spec.flag}`));
    }
  }));
});

Deno.test("a duration that is written and read again is the same", () => {
  fc.assert(fc.property(fc.nat({ max: 2 ** 40 }), (ms) => {
    assert.equal(parseDuration(formatDuration(ms), "d"), ms);
  }));
});

Deno.test("kinds are split at commas and named once", () => {
  assert.deepEqual(read({ kinds: "A,B, A" }).kinds, ["A", "B"]);
  assert.equal(read().kinds, null);
});

Deno.test("the store is Postgres when its URL is set, else --store must name one", () => {
  assert.deepEqual(read({}, POSTGRES).store, { engine: "postgres" });
  assert.deepEqual(read({ store: "memory" }, POSTGRES).store, { engine: "sqlite", path: ":memory:" });
  assert.deepEqual(read({ store: "sqlite:./a b.db" }).store, { engine: "sqlite", path: "./a b.db" });
  assert.throws(() => requireStore(read(), "work"), /LANEWAY_DATABASE_URL.*--store memory.*sqlite:PATH/);
  for (const store of ["sqlite:", "sqlite::memory:", "mysql"]) {
    assert.throws(() => read({ store }), /it must be memory, sqlite:PATH or postgres/);
  }
});

Deno.test("Postgres without one of its logins is refused, naming the variable", () => {
  const { LANEWAY_DATABASE_URL } = POSTGRES;
  assert.throws(
    () => requireStore(read({}, { LANEWAY_DATABASE_URL }), "work"),
    /LANEWAY_SYSTEM_DATABASE_URL is not set/,
  );
  assert.throws(() => requireStore(read({ store: "postgres" }), "work"), /LANEWAY_DATABASE_URL is not set/);
  assert.throws(() => requireStore(read({}, POSTGRES), "migrate"), /LANEWAY_MIGRATE_DATABASE_URL is not set/);
  const owner = { LANEWAY_MIGRATE_DATABASE_URL: "postgres://owner@db/x" };
  assert.deepEqual(requireStore(read({}, owner), "migrate"), { engine: "postgres" });
});

Deno.test("capacity beyond the pools is refused on Postgres, naming both flags and the fix", () => {
  assert.throws(
    () => read({ capacity: "201" }, POSTGRES),
    /--capacity 201 with --pool-size 10.*--pool-size 11 or --capacity 200/,
  );
  assert.equal(read({ capacity: "200" }, POSTGRES).capacity, 200);
  assert.equal(read({ capacity: "2000", store: "memory" }).capacity, 2_000);
});

Deno.test("keys must outlive outbox rows", () => {
  assert.throws(
    () => read({ keyRetentionMs: "1h" }),
    /--key-retention 1h with --outbox-retention 1d.*raise --key-retention/,
  );
});

Deno.test("behind a transaction-mode pooler the worker polls, and asking to listen needs a direct URL", () => {
  assert.equal(read({ pooler: "transaction" }, POSTGRES).listen, "off");
  assert.throws(() => read({ pooler: "transaction", listen: "on" }, POSTGRES), /LANEWAY_LISTEN_DATABASE_URL/);
  const direct = { ...POSTGRES, LANEWAY_LISTEN_DATABASE_URL: "postgres://system:pw@direct/x" };
  assert.equal(read({ pooler: "transaction", listen: "on" }, direct).listen, "on");
});

Deno.test("an unknown LANEWAY_ variable is warned of, with the one that was meant", () => {
  assert.deepEqual(read({}, { LANEWAY_CAPACTY: "3", OTHER: "x", LANEWAY_LANE: "a" }).warnings, [
    "LANEWAY_CAPACTY is set but means nothing: did you mean LANEWAY_CAPACITY?",
  ]);
});

Deno.test("flags and variables are unique, and no flag holds a URL", () => {
  const flags = FLAG_ENTRIES.map(([, spec]) => spec.flag);
  assert.equal(new Set(flags).size, flags.length);
  assert.equal(envName(FLAGS.drainGraceMs), "LANEWAY_DRAIN_GRACE");
  assert.equal(flags.some((flag) => /url|password|secret/.test(flag)), false);
});
