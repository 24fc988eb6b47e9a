import assert from "node:assert/strict";
import fc from "fast-check";
import { ByteRing } from "./byte_ring.ts";
import { harmless, MAX_TAIL_BYTES, Tail } from "./tail.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("ByteRing keeps the last bytes of any sequence of chunks", () => {
  fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 3_000 }), { maxLength: 12 }), (chunks) => {
    const ring = new ByteRing(4_096);
    for (const chunk of chunks) ring.push(chunk);
    const all = chunks.flatMap((chunk) => [...chunk]);
    assert.equal(ring.total, all.length);
    assert.deepEqual([...ring.last()], all.slice(-4_096));
  }));
});

Deno.test("a tail is valid UTF-8 of at most 8 KiB without control codes, and counts what it leaves out", () => {
  fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 6_000 }), { maxLength: 5 }), (chunks) => {
    const tail = new Tail();
    for (const chunk of chunks) tail.push(chunk);
    const { text, cutBytes } = tail.read();
    assert.ok(text.isWellFormed());
    assert.ok(bytes(text).length <= MAX_TAIL_BYTES);
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.ok(cutBytes >= 0 && cutBytes <= tail.total);
  }));
});

Deno.test("text without control codes comes through as it is", () => {
  const text = "naïve 東京 😀\tx\n".repeat(20);
  assert.deepEqual(harmless(bytes(text), bytes(text).length), { text, cutBytes: 0 });
});

Deno.test("a tail never begins within a character", () => {
  const all = bytes("é".repeat(6_000) + "!");
  const tail = new Tail();
  tail.push(all);
  const { text, cutBytes } = tail.read();
  assert.equal(text, "é".repeat(4_095) + "!");
  assert.equal(cutBytes, all.length - bytes(text).length);
});

Deno.test("what grows when it is made harmless is cut to the bound", () => {
  const { text, cutBytes } = harmless(new Uint8Array(5_000).fill(0x1b), 5_000);
  assert.equal(text, "␛".repeat(2_730));
  assert.equal(cutBytes, 5_000 - 2_730);
});
