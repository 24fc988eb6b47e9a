/** BullMQ on its Postgres backend: settings come from the table of contenders. */
import { serveCommands } from "./child.mjs";

// By a name that is no literal: Deno must not look for it in its own import map.
const PACKAGE = "bullmq";
const { createPostgresBackend, withBackend } = await import(PACKAGE);

const { Queue, Worker } = withBackend(createPostgresBackend);
const QUEUE = "noop";

serveCommands({
  async prepare({ url }) {
    const queue = new Queue(QUEUE, { connection: { connectionString: url, migrate: true } });
    await queue.waitUntilReady();
    await queue.close();
  },
  async openProducer({ url }) {
    const queue = new Queue(QUEUE, { connection: { connectionString: url } });
    await queue.waitUntilReady();
    return {
      enqueue: (n) => queue.add("noop", { n }),
      enqueueMany: (ns) => queue.addBulk(ns.map((n) => ({ name: "noop", data: { n } }))),
      close: () => queue.close(),
    };
  },
  async startWorker({ url, pool, worker }, onItem) {
    const connection = { connectionString: url, ...pool };
    const made = new Worker(QUEUE, (job) => onItem(job.data.n), { connection, ...worker });
    made.on("error", (error) => console.error(error));
    await made.waitUntilReady();
    return { stop: () => made.close() };
  },
});
