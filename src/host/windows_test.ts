import assert from "node:assert/strict";
import { ValidationError } from "../core/errors.ts";
import type { HostWindow } from "./types.ts";
import { describeWindow, holds, nextOpening, openWindow, parseWindows } from "./windows.ts";

const BASE: HostWindow = {
  name: "day",
  timeZone: "UTC",
  days: [],
  from: "08:00",
  to: "18:00",
  maxInFlight: 2,
  weights: null,
};

function at(iso: string): number {
  return Date.parse(iso);
}

/** The minutes of a day of the zone, hours apart, at which a window holds: the UTC instants from `from` on. */
function heldBetween(window: HostWindow, from: string, to: string): string[] {
  const held: string[] = [];
  for (let ms = at(from); ms < at(to); ms += 15 * 60_000) {
    if (holds(window, ms)) held.push(new Date(ms).toISOString().slice(11, 16));
  }
  return held;
}

Deno.test("a window holds from its beginning to just before its end", () => {
  assert.equal(holds(BASE, at("2026-06-01T07:59:59.999Z")), false);
  assert.equal(holds(BASE, at("2026-06-01T08:00:00Z")), true);
  assert.equal(holds(BASE, at("2026-06-01T17:59:59.999Z")), true);
  assert.equal(holds(BASE, at("2026-06-01T18:00:00Z")), false);
});

Deno.test("a window over midnight belongs to the day it begins on", () => {
  // 2026-06-05 is a Friday.
  const friday = { ...BASE, days: [5], from: "20:00", to: "03:00" };
  assert.equal(holds(friday, at("2026-06-05T20:00:00Z")), true);
  assert.equal(holds(friday, at("2026-06-06T02:59:00Z")), true, "Saturday's early hours are Friday's night");
  assert.equal(holds(friday, at("2026-06-06T03:00:00Z")), false);
  assert.equal(holds(friday, at("2026-06-05T01:00:00Z")), false, "Friday's early hours are Thursday's night");
  const sunday = { ...friday, days: [7] };
  assert.equal(holds(sunday, at("2026-06-08T01:00:00Z")), true, "Monday's early hours are Sunday's night");
});

Deno.test("a window that ends when it begins is a whole day from there", () => {
  const saturday = { ...BASE, days: [6], from: "06:00", to: "06:00" };
  assert.equal(holds(saturday, at("2026-06-06T05:59:00Z")), false);
  assert.equal(holds(saturday, at("2026-06-06T06:00:00Z")), true);
  assert.equal(holds(saturday, at("2026-06-07T05:59:00Z")), true);
  assert.equal(holds(saturday, at("2026-06-07T06:00:00Z")), false);
});

Deno.test("of windows that overlap the first in order decides, also when it closes", () => {
  const lunch = { ...BASE, name: "lunch", from: "12:00", to: "13:00", maxInFlight: 0 };
  assert.equal(openWindow([lunch, BASE], at("2026-06-01T12:30:00Z"))?.name, "lunch");
  assert.equal(openWindow([BASE, lunch], at("2026-06-01T12:30:00Z"))?.name, "day");
  assert.equal(openWindow([lunch, BASE], at("2026-06-01T13:00:00Z"))?.name, "day");
  assert.equal(openWindow([lunch, BASE], at("2026-06-01T19:00:00Z")), null);
  assert.equal(openWindow([], at("2026-06-01T12:30:00Z")), null);
});

// Berlin goes from 01:59 to 03:00 on 2026-03-29 (at 01:00 UTC) and repeats 02:00 to 02:59 on 2026-10-25 (until 01:00 UTC
// in summer time, from then on in winter time). New York does the same on 2026-03-08 (07:00 UTC) and 2026-11-01 (06:00).
const CHANGES = [
  { zone: "Europe/Berlin", gap: "2026-03-29T01:00:00Z", repeated: "2026-10-25T00:00:00Z" },
  { zone: "America/New_York", gap: "2026-03-08T07:00:00Z", repeated: "2026-11-01T05:00:00Z" },
];

for (const { zone, gap, repeated } of CHANGES) {
  const hour = 3_600_000;
  const iso = (ms: number) => new Date(ms).toISOString();
  // In both zones the hour from 02:00 is left out in spring; in autumn Berlin repeats it, New York the one from 01:00.
  const twice = zone === "Europe/Berlin" ? ["02:15", "02:45"] : ["01:15", "01:45"];

  Deno.test(`a window that begins in the hour left out begins at its end: ${zone}`, () => {
    const window = { ...BASE, timeZone: zone, from: "02:30", to: "04:00" };
    assert.equal(holds(window, at(gap) - 1), false, "01:59 on the wall");
    assert.equal(holds(window, at(gap)), true, "03:00 on the wall");
    assert.equal(holds(window, at(gap) + hour), false, "04:00 on the wall");
  });

  Deno.test(`a window that lies in the hour left out is left out that day: ${zone}`, () => {
    const window = { ...BASE, timeZone: zone, from: "02:15", to: "02:45" };
    assert.deepEqual(heldBetween(window, iso(at(gap) - 2 * hour), iso(at(gap) + 2 * hour)), []);
    const before = heldBetween(window, iso(at(gap) - 24 * hour), iso(at(gap) - 22 * hour));
    assert.equal(before.length, 2, "it holds on the day before");
  });

  Deno.test(`a window over the hour left out is an hour shorter: ${zone}`, () => {
    const window = { ...BASE, timeZone: zone, from: "00:00", to: "06:00" };
    const held = heldBetween(window, iso(at(gap) - 12 * hour), iso(at(gap) + 12 * hour));
    assert.equal(held.length, 5 * 4);
  });

  Deno.test(`a window that lies in the repeated hour holds twice: ${zone}`, () => {
    const window = { ...BASE, timeZone: zone, from: twice[0] ?? "", to: twice[1] ?? "" };
    const minutes = heldBetween(window, iso(at(repeated) - hour), iso(at(repeated) + 3 * hour));
    const hh = (ms: number) => iso(ms).slice(11, 14);
    const [first, second] = [hh(at(repeated)), hh(at(repeated) + hour)];
    assert.deepEqual(minutes, [`${first}15`, `${first}30`, `${second}15`, `${second}30`]);
  });

  Deno.test(`a whole day is open over both changes, without a break: ${zone}`, () => {
    const window = { ...BASE, timeZone: zone, from: "00:00", to: "00:00" };
    for (const around of [gap, repeated]) {
      const held = heldBetween(window, iso(at(around) - 24 * hour), iso(at(around) + 24 * hour));
      assert.equal(held.length, 48 * 4);
    }
    const sunday = { ...window, days: [7] };
    assert.equal(heldBetween(sunday, iso(at(gap) - 48 * hour), iso(at(gap) + 48 * hour)).length, 23 * 4);
    assert.equal(heldBetween(sunday, iso(at(repeated) - 48 * hour), iso(at(repeated) + 48 * hour)).length, 25 * 4);
  });
}

Deno.test("a zone without daylight saving, half an hour off, goes by its own wall", () => {
  const window = { ...BASE, timeZone: "Asia/Kolkata", from: "09:00", to: "10:00" };
  assert.equal(holds(window, at("2026-06-01T03:29:00Z")), false);
  assert.equal(holds(window, at("2026-06-01T03:30:00Z")), true);
});

Deno.test("the next opening is told to the minute, over closed windows and changes of the clock", () => {
  const window = { ...BASE, timeZone: "Europe/Berlin", days: [1], from: "08:00", to: "09:00" };
  // Friday 2026-03-27; the Monday after is in summer time.
  assert.equal(nextOpening([window], at("2026-03-27T12:00:30Z")), at("2026-03-30T06:00:00Z"));
  assert.equal(nextOpening([{ ...window, maxInFlight: 0 }], at("2026-03-27T12:00:00Z")), null);
  assert.equal(nextOpening([], at("2026-03-27T12:00:00Z")), null);
});

Deno.test("windows are read from the row's JSON, days and weights left out meaning every day and the host's own", () => {
  const row = [{ name: "night", timeZone: "Europe/Berlin", from: "20:00", to: "03:00", maxInFlight: 1 }];
  assert.deepEqual(parseWindows(row), [{ ...row[0], days: [], weights: null }]);
  assert.equal(describeWindow({ ...BASE, days: [5, 1] }), "day (Mon,Fri 08:00–18:00 UTC)");
});

const BAD: readonly (readonly [what: string, value: unknown, field: string, says: RegExp])[] = [
  ["no list", { night: true }, "windows", /list|array/],
  ["null", null, "windows", /windows null: it must be a list$/],
  ["a zone nobody knows", [{ ...BASE, timeZone: "Europe/Berln" }], "windows.0.timeZone", /IANA/],
  ["an offset as a zone", [{ ...BASE, timeZone: "+02:00" }], "windows.0.timeZone", /IANA/],
  ["a time beyond the day", [{ ...BASE, from: "24:00" }], "windows.0.from", /00:00 to 23:59/],
  ["a time with seconds", [{ ...BASE, to: "10:00:00" }], "windows.0.to", /00:00 to 23:59/],
  ["a day 0", [BASE, { ...BASE, days: [0] }], "windows.1.days.0", /1/],
  [
    "half an item",
    [{ ...BASE, maxInFlight: 0.5 }],
    "windows.0.maxInFlight",
    /maxInFlight 0\.5: it must be a whole number$/,
  ],
  ["no cap", [{ ...BASE, maxInFlight: undefined }], "windows.0.maxInFlight", /maxInFlight: it is missing/],
  ["a weight in capitals", [{ ...BASE, weights: ["Light"] }], "windows.0.weights.0", /"Light": a weight is lower-case/],
  ["a misspelled field", [{ ...BASE, weight: ["light"] }], "windows.0", /weight/],
];

for (const [what, value, field, says] of BAD) {
  Deno.test(`windows that cannot be read are refused naming the field: ${what}`, () => {
    assert.throws(() => parseWindows(value), (error) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.field, field);
      assert.match(error.message, says);
      return true;
    });
  });
}
