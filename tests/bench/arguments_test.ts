import assert from "node:assert/strict";
import { ArgumentError, HELP, parseArguments, PARTS, RESULTS } from "./arguments.ts";
import { COMPARISONS, CONTENDERS, HANDICAPPED } from "./contenders.ts";

Deno.test("a run without arguments measures everything in five rounds and keeps its results", () => {
  const args = parseArguments([]);
  assert.deepEqual([args.rounds, args.scale, args.json, args.render, args.help], [5, 1, RESULTS, false, false]);
  assert.deepEqual(args.parts, PARTS);
  assert.equal(args.contenders.length, CONTENDERS.length);
});

Deno.test("a run of some of it, or a smaller one, does not overwrite the results of a full one", () => {
  for (const some of [["--only", "drain"], ["--contenders", "laneway"], ["--scale", "0.5"], ["--quick"]]) {
    assert.equal(parseArguments(some).json, null, some.join(" "));
  }
  assert.equal(parseArguments(["--rounds", "1"]).json, RESULTS);
  assert.equal(parseArguments(["--only", "drain", "--json", "x.json"]).json, "x.json");
  assert.equal(parseArguments(["--render"]).json, RESULTS);
});

Deno.test("--quick is one small round, and --rounds and --scale still go before it", () => {
  const quick = parseArguments(["--quick"]);
  assert.deepEqual([quick.rounds, quick.scale, quick.parts.includes("fleet")], [1, 0.1, false]);
  const args = parseArguments(["--quick", "--rounds", "2", "--scale", "0.2"]);
  assert.deepEqual([args.rounds, args.scale], [2, 0.2]);
});

Deno.test("parts and contenders keep the order of the report, however they are named", () => {
  assert.deepEqual(parseArguments(["--only", "latency, drain"]).parts, ["drain", "latency"]);
  assert.deepEqual(parseArguments(["--contenders", "graphile,laneway"]).contenders, ["laneway", "graphile"]);
});

Deno.test("a wrong argument is refused, naming itself and what is accepted", () => {
  const refused: readonly (readonly [string[], RegExp])[] = [
    [["--rounds", "0"], /--rounds "0": .* whole number from 1 to 100/],
    [["--rounds", "1.5"], /--rounds "1.5"/],
    [["--rounds", ""], /--rounds ""/],
    [["--scale", "0"], /--scale "0": .* above 0 to 10/],
    [["--scale", "many"], /--scale "many"/],
    [["--only", "drain,speed"], /--only "speed": name some of drain/],
    [["--only", ","], /--only ","/],
    [["--contenders", "river"], /--contenders "river": name some of laneway/],
    [["--fast"], /--fast/],
    [["drain"], /drain/],
  ];
  for (const [args, message] of refused) {
    assert.throws(() => parseArguments(args), (error) => error instanceof ArgumentError && message.test(error.message));
  }
});

Deno.test("the help names every part and contender; every comparison names contenders there are", () => {
  for (const name of [...PARTS, ...CONTENDERS.map(({ id }) => id)]) assert.ok(HELP.includes(name), name);
  const retention = (id: string) => CONTENDERS.find((contender) => contender.id === id)?.retention;
  for (const { ours, theirs } of COMPARISONS) assert.equal(retention(ours), retention(theirs), `${ours} / ${theirs}`);
  for (const { ours, theirs } of HANDICAPPED) {
    assert.deepEqual([retention(ours), retention(theirs)], ["keep", "delete"], `${ours} / ${theirs}`);
  }
});
