import assert from "node:assert/strict";
import { HintHub } from "../../tests/support/hint_hub.ts";
import { FakeClock } from "../core/fake_clock.ts";
import { PostgresTopics } from "./postgres_topics.ts";
import { encodeHint, type Topics } from "./topics.ts";

const LANE = { lane: "default" };
const carry = (topics: Topics) => topics.carry?.("WORK_AVAILABLE", LANE) ?? null;

Deno.test("a hint is carried by three transactions at a time, and by no more than its pace has it", async () => {
  const clock = new FakeClock();
  const hub = new HintHub(clock);
  const topics = hub.topics();
  const first = carry(topics);
  assert.equal(first?.text, encodeHint("WORK_AVAILABLE", LANE));
  const others = [carry(topics), carry(topics)];
  assert.ok(others.every((hint) => hint !== null));
  assert.equal(carry(topics), null, "three are under way");
  others.forEach((hint) => hint?.ended());
  await clock.tick(50);
  assert.equal(carry(topics), null, "one has been under way for long: commits are slow");
  assert.notEqual(topics.carry("WORK_AVAILABLE", { lane: "other" }), null, "of another lane they tell nothing");
  first?.ended();
  const taken: boolean[] = [];
  for (let n = 0; n < 10; n++) {
    const hint = carry(topics);
    taken.push(hint !== null);
    hint?.ended();
  }
  assert.deepEqual(taken, taken.map((_, n) => n < 4), "those left this moment");
  assert.equal(hub.sent, 0, "the transactions send them");
  await topics.close();
});

Deno.test("a hint published behind a carried one is held for the gap and leaves; meanwhile none is carried", async () => {
  const clock = new FakeClock();
  const hub = new HintHub(clock);
  const topics = hub.topics();
  for (let n = 0; n < 4; n++) carry(topics)?.ended();
  const published = topics.publish("WORK_AVAILABLE", LANE);
  assert.equal(hub.sent, 0);
  assert.equal(carry(topics), null);
  await clock.tick(20);
  await published;
  assert.equal(hub.sent, 1);
  await topics.close();
  assert.equal(carry(topics), null, "nor by closed topics");
});

Deno.test("without a listening connection nothing is carried: this process's subscribers are told by publish()", async () => {
  const topics = new PostgresTopics({ clock: new FakeClock(), run: () => Promise.resolve() });
  assert.equal(carry(topics), null);
  await topics.close();
});
