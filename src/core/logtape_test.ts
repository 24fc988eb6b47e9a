import assert from "node:assert/strict";
import { getLogger } from "@logtape/logtape";
import { createLogger } from "./logtape.ts";

function memoryStream(
  terminal = false,
): { write(b: Uint8Array): Promise<number>; isTerminal(): boolean; lines(): string[] } {
  let text = "";
  return {
    write(bytes) {
      text += new TextDecoder().decode(bytes);
      return Promise.resolve(bytes.length);
    },
    isTerminal: () => terminal,
    lines: () => text.split("\n").slice(0, -1),
  };
}

Deno.test("createLogger() writes JSON lines off a terminal and readable text on one", async () => {
  const [pipe, terminal] = [memoryStream(), memoryStream(true)];
  const [json, text] = [createLogger({ stream: pipe }), createLogger({ stream: terminal, color: false })];
  json.info("worker.started", { lane: "default" });
  text.info("worker.started", { lane: "default" });
  await json.flush();
  await text.flush();
  assert.equal(JSON.parse(pipe.lines()[0] ?? "").lane, "default");
  assert.match(terminal.lines()[0] ?? "", /INFO {2}worker\.started lane=default$/);
  assert.equal(pipe.lines().length + terminal.lines().length, 2, "each logger has its own stream");
});

Deno.test("createLogger() drops what lies below its level", async () => {
  const stream = memoryStream();
  const logger = createLogger({ stream, level: "warn" });
  for (const level of ["debug", "info", "warn", "error"] as const) logger[level](level);
  await logger.flush();
  assert.deepEqual(stream.lines().map((line) => JSON.parse(line).level), ["warn", "error"]);
});

Deno.test("an event with braces in it is written as it stands", async () => {
  const stream = memoryStream();
  const logger = createLogger({ stream });
  logger.error("bad {thing} }{", { thing: 1 });
  await logger.flush();
  assert.equal(JSON.parse(stream.lines()[0] ?? "").event, "bad {thing} }{");
});

Deno.test("warnings of libraries that log through LogTape leave by the same stream", async () => {
  const stream = memoryStream();
  const logger = createLogger({ stream });
  getLogger(["some-library"]).warn("it creaks");
  getLogger(["some-library"]).info("chatter");
  await logger.flush();
  assert.deepEqual(stream.lines().map((line) => JSON.parse(line).category), ["some-library"]);
});
