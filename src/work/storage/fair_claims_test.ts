import assert from "node:assert/strict";
import { UnavailableError } from "../../core/errors.ts";
import type { Database, Param } from "../../db/database.ts";
import type { ClaimRequest, OwnedItem } from "../storage.ts";
import { ClaimPlaces } from "./claim_places.ts";
import { FairClaims } from "./fair_claims.ts";
import { FairTurns } from "./fair_turns.ts";
import { workSql } from "./sql.ts";

const REQUEST: ClaimRequest = { lane: "l", kinds: ["A"], worker: "w", leaseMs: 1_000, limit: 10, token: "t" };
const away = () => new UnavailableError("the database is away", "not-executed");
// A claimed row has 21 values of the item, the org first and its last write last, and its place.
const nothing = (level: number | null, more = false) => [[...Array(22).fill(null), null, level, more]];
const row = (level: number, turn: number | null, orgId: string, more = true) => [
  ...[orgId, `${orgId}-${turn}`, ...Array(18).fill(null), new Date(0), "(0,1)"],
  ...[turn, level, more],
];

/** Claims over answers in the order they are asked for; an error is thrown. `asked` holds the parameters. */
function claimsOver(answers: readonly (unknown[][] | Error)[], due: readonly OwnedItem[] = []) {
  const asked: (readonly Param[])[] = [];
  const askedDue: ClaimRequest[] = [];
  const system = (_sql: string, params: readonly Param[]) => {
    asked.push(params);
    const answer = answers[asked.length - 1] ?? [];
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const claims = new FairClaims({ system } as unknown as Database, {
    sql: workSql("now()"),
    places: new ClaimPlaces(),
    claimDue: (request) => {
      askedDue.push(request);
      return Promise.resolve([...due]);
    },
  });
  return { claims, asked, askedDue };
}

Deno.test("nothing due is one statement, and so is a short claim of the only priority", async () => {
  const empty = claimsOver([nothing(null)]);
  assert.deepEqual(await empty.claims.claim(REQUEST), []);
  assert.equal(empty.asked.length, 1);
  const short = claimsOver([[row(10, 1, "o", false)]]);
  assert.equal((await short.claims.claim(REQUEST)).length, 1);
  assert.equal(short.asked.length, 1);
});

Deno.test("a priority whose rows others hold is passed over, and the claim goes on behind it", async () => {
  const { claims, asked } = claimsOver([nothing(5, true), [row(10, 1, "o", false)]]);
  assert.equal((await claims.claim(REQUEST)).length, 1);
  assert.deepEqual(asked.map((params) => params.at(-1)), [0, 6]);
});

Deno.test("behind four priorities the rest is claimed without turns, under the same token", async () => {
  const { claims, asked, askedDue } = claimsOver([1, 2, 3, 4, 5].map((level) => [row(level, 1, "o")]));
  await claims.claim(REQUEST);
  assert.equal(asked.length, 4);
  assert.deepEqual(askedDue, [{ ...REQUEST, limit: 6 }]);
});

Deno.test("a claim that breaks off midway has an unknown outcome, so that what it holds is looked for by its token", async () => {
  const { claims } = claimsOver([[row(5, 1, "o")], away()]);
  await assert.rejects(claims.claim(REQUEST), { code: "UNAVAILABLE", outcome: "unknown" });
  const first = claimsOver([away()]);
  await assert.rejects(first.claims.claim(REQUEST), { outcome: "not-executed" });
});

Deno.test("the next turn begins behind the org that had the last one, not behind what filled up", async () => {
  const { claims, asked } = claimsOver([[row(10, 1, "a", false), row(10, 2, "b", false), row(10, null, "z", false)]]);
  await claims.claim(REQUEST);
  await claims.claim(REQUEST);
  assert.equal(JSON.parse(String(asked[1]?.[6]))["10"], "b");
});

Deno.test("turns are kept for each lane and each priority, and of many priorities for those used last", () => {
  const turns = new FairTurns("start");
  turns.served("l", 10, "a");
  turns.served("l", 5, "b");
  assert.deepEqual(turns.of("l"), { 5: "b", 10: "a", start: "start" });
  assert.deepEqual([turns.after("l", 10), turns.after("l", 7), turns.after("m", 10)], ["a", "start", "start"]);
  for (let priority = 100; priority < 115; priority++) {
    turns.served("l", priority, "c");
    turns.served("l", 10, "d");
  }
  assert.equal(Object.keys(turns.of("l")).length, 17);
  assert.deepEqual([turns.after("l", 5), turns.after("l", 10)], ["start", "d"]);
});
