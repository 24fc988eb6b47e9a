import assert from "node:assert/strict";
import { ClaimPlaces } from "./claim_places.ts";

Deno.test("a place is told once, and only of the claim that found it", () => {
  const places = new ClaimPlaces();
  places.remember("t", [["a", "(0,1)"], ["b", "(0,2)"]]);
  assert.equal(places.take({ token: "u", id: "a" }), undefined);
  assert.equal(places.take({ token: "t", id: "a" }), "(0,1)");
  assert.equal(places.take({ token: "t", id: "a" }), undefined);
  assert.equal(places.take({ token: "t", id: "b" }), "(0,2)");
});

Deno.test("what one claim finds by several statements is kept together", () => {
  const places = new ClaimPlaces();
  places.remember("t", [["a", "(0,1)"]]);
  places.remember("t", [["b", "(0,2)"]]);
  assert.deepEqual(["a", "b"].map((id) => places.take({ token: "t", id })), ["(0,1)", "(0,2)"]);
});

Deno.test("of items that never complete here the places are forgotten, oldest claim first", () => {
  const places = new ClaimPlaces();
  for (let n = 0; n < 1_000; n++) places.remember(`t${n}`, [["a", `(0,${n})`]]);
  const kept = Array.from({ length: 1_000 }, (_, n) => n).filter((n) => places.take({ token: `t${n}`, id: "a" }));
  assert.deepEqual(kept, Array.from({ length: 64 }, (_, n) => 936 + n));
});
