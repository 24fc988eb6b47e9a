/**
 * What a measured process speaks: one command as a line of JSON on standard input, one answer as a line on standard output.
 * Laneway's own process and the peers' processes run this same file, so all are driven and counted alike.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";

/**
 * Enqueues. `n` is the whole payload, so that each run can be told apart.
 *
 * @typedef {object} Producer
 * @property {(n: number) => Promise<unknown>} enqueue One item, one call.
 * @property {(ns: readonly number[]) => Promise<unknown>} enqueueMany Many items, one call.
 * @property {() => Promise<unknown>} close
 */

/**
 * One contender.
 *
 * @typedef {object} Adapter
 * @property {(settings: Record<string, any>) => Promise<unknown>} prepare Makes the schema in an empty database.
 * @property {(settings: Record<string, any>) => Promise<Producer>} openProducer
 * @property {(settings: Record<string, any>, onItem: (n: number) => void | Promise<void>) => Promise<{ stop(): Promise<unknown> }>} startWorker
 * Starts to work; `onItem` is the handler.
 * @property {() => Promise<{ left: number, finished: number }>} [count] Where the store is inside this process.
 */

/** Which items ran, and when each began. */
class Runs {
  constructor(expected, handlerMs) {
    this.expected = expected;
    this.handlerMs = handlerMs;
    this.counts = new Uint8Array(expected);
    this.startedMs = new Float64Array(expected);
    this.runs = 0;
    this.all = new Promise((resolve) => this.resolve = resolve);
  }

  /** The handler: no more than a count, so that what is measured is the queue. */
  run(n) {
    this.startedMs[n] = performance.now();
    this.counts[n]++;
    if (this.handlerMs === 0) return this.ran();
    return new Promise((slept) => setTimeout(slept, this.handlerMs)).then(() => this.ran());
  }

  ran() {
    if (++this.runs === this.expected) this.resolve();
  }

  /** Each id exactly once is what makes a figure true. */
  report() {
    return { runs: this.runs, once: this.counts.reduce((sum, count) => sum + (count === 1 ? 1 : 0), 0) };
  }
}

const range = (from, count) => Array.from({ length: count }, (_, i) => from + i);

/** Enqueues `count` items `per` a call, or singly with `concurrent` calls in flight. Answers the milliseconds it took. */
async function enqueue(producer, { count, per, concurrent = 1, from = 0 }) {
  const chunks = [];
  for (let n = 0; n < count; n += per) chunks.push(range(from + n, Math.min(per, count - n)));
  const startMs = performance.now();
  const one = per === 1 ? ([n]) => producer.enqueue(n) : (ns) => producer.enqueueMany(ns);
  let next = 0;
  await Promise.all(
    range(0, concurrent).map(async () => {
      while (next < chunks.length) await one(chunks[next++]);
    }),
  );
  return { ms: performance.now() - startMs };
}

/** Enqueues at a steady pace, whatever the answers take. Answers when each call was made. */
async function produce(producer, { count, perSecond, from = 0 }) {
  const sentMs = [];
  const calls = [];
  const startMs = performance.now();
  for (let n = 0; n < count; n++) {
    const waitMs = startMs + n * 1000 / perSecond - performance.now();
    if (waitMs > 0) await new Promise((wait) => setTimeout(wait, waitMs));
    sentMs.push(performance.now());
    calls.push(producer.enqueue(from + n));
  }
  await Promise.all(calls);
  return { sentMs };
}

/**
 * Answers commands until standard input ends or `end` is said.
 *
 * @param {Adapter} adapter
 * @returns {Promise<void>}
 */
// deno-lint-ignore explicit-module-boundary-types
export async function serveCommands(adapter) {
  let settings = {};
  let producer = null;
  let worker = null;
  let runs = new Runs(0, 0);
  const commands = {
    setUp: (command) => void (settings = command.settings),
    prepare: () => adapter.prepare(settings),
    openProducer: async () => void (producer = await adapter.openProducer(settings)),
    enqueue: (command) => enqueue(producer, command),
    produce: (command) => produce(producer, command),
    closeProducer: () => producer.close(),
    work: async ({ expected, handlerMs }) => {
      runs = new Runs(expected, handlerMs);
      worker = await adapter.startWorker(settings, (n) => runs.run(n));
    },
    ran: async () => {
      await runs.all;
      return runs.report();
    },
    starts: () => ({ startedMs: [...runs.startedMs], ...runs.report() }),
    stop: () => worker.stop(),
    count: () => adapter.count(),
    now: () => ({ nowMs: performance.now() }),
    end: () => {},
  };
  // What a library prints must not be taken for an answer.
  console.log = console.info = console.debug = console.error;
  const lines = createInterface({ input: process.stdin });
  // The bench is gone, whatever is being waited for here.
  lines.once("close", () => process.exit(0));
  for await (const line of lines) {
    const command = JSON.parse(line);
    let answer;
    try {
      answer = { ok: true, ...await commands[command.do](command) };
    } catch (error) {
      answer = { ok: false, error: error instanceof Error ? error.stack ?? error.message : String(error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
    if (command.do === "end") break;
  }
  process.exit(0);
}
