import assert from "node:assert/strict";
import fc from "fast-check";
import { type InputLine, readLines } from "./line_reader.ts";

async function lines(bytes: Uint8Array, sizes: readonly number[], maxBytes = 1_000): Promise<InputLine[]> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    let at = 0;
    for (let i = 0; at < bytes.length; i++) {
      const size = sizes[i % sizes.length] ?? 1;
      yield bytes.slice(at, at + size);
      at += size;
    }
  }
  return await Array.fromAsync(readLines(chunks(), maxBytes));
}

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("however the bytes are cut, the same lines come out with their numbers", async () => {
  const text = "\ufeff{1}\r\n\n  {ü2}\n{🚚3}";
  await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (sizes) => {
    assert.deepEqual(await lines(encode(text), sizes), [
      { number: 1, text: "{1}", refused: null },
      { number: 3, text: "{ü2}", refused: null },
      { number: 4, text: "{🚚3}", refused: null },
    ]);
  }));
});

Deno.test("a line that is too long or no UTF-8 is refused and the next one is read", async () => {
  const bytes = new Uint8Array([...encode(`${"x".repeat(50)}\n`), 0xff, 0xfe, 10, ...encode("ok\n")]);
  const found = await lines(bytes, [7], 20);
  assert.deepEqual(found.map((line) => [line.number, line.text, line.refused]), [
    [1, null, "the line has 50 bytes, the limit is 20"],
    [2, null, "the line is not UTF-8"],
    [3, "ok", null],
  ]);
});

Deno.test("no input is no line", async () => {
  assert.deepEqual(await lines(new Uint8Array(), [1]), []);
});
