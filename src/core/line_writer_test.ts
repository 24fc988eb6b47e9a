import assert from "node:assert/strict";
import { type ByteStream, LineWriter } from "./line_writer.ts";

/** A stream that takes nothing until it is opened, then up to `atOnce` bytes a write. */
function gatedStream(atOnce = Infinity): ByteStream & { open(): void; text(): string } {
  const gate = Promise.withResolvers<void>();
  let text = "";
  return {
    async write(bytes) {
      await gate.promise;
      const part = bytes.subarray(0, Math.min(atOnce, bytes.length));
      text += new TextDecoder().decode(part);
      return part.length;
    },
    open: () => gate.resolve(),
    text: () => text,
  };
}

Deno.test("write() never waits, and flush() waits until every line is out, in order", async () => {
  const stream = gatedStream(3);
  const writer = new LineWriter({ stream });
  for (let i = 0; i < 5; i++) writer.write(`line ${i}`);
  assert.equal(stream.text(), "");
  stream.open();
  assert.equal(await writer.flush(), true);
  assert.equal(stream.text(), "line 0\nline 1\nline 2\nline 3\nline 4\n");
});

Deno.test("flush() gives up on a pipe that nobody reads", async () => {
  const stream = gatedStream();
  const writer = new LineWriter({ stream });
  writer.write("stuck");
  assert.equal(await writer.flush(5), false);
  stream.open();
  assert.equal(await writer.flush(), true);
});

Deno.test("a full queue drops lines and counts every one of them", async () => {
  const stream = gatedStream();
  let dropped = 0;
  const writer = new LineWriter({ stream, maxQueued: 20, onDropped: (lines) => dropped += lines });
  for (let i = 0; i < 10; i++) writer.write("12345");
  assert.equal(dropped, 6);
  stream.open();
  await writer.flush();
  assert.equal(stream.text(), "12345\n".repeat(4));
  writer.write("again");
  await writer.flush();
  assert.equal(stream.text().endsWith("again\n"), true, "there is room again once the queue is out");
});

Deno.test("a closed pipe drops what waits and what follows, and throws nothing", async () => {
  let dropped = 0;
  const writer = new LineWriter({
    stream: { write: () => Promise.reject(new Deno.errors.BrokenPipe()) },
    onDropped: (lines) => dropped += lines,
  });
  writer.write("a");
  writer.write("b");
  assert.equal(await writer.flush(), true);
  writer.write("c");
  assert.equal(dropped, 3);
});
