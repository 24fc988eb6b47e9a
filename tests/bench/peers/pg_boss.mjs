/** pg-boss: settings come from the table of contenders. */
import { serveCommands } from "./child.mjs";

// By a name that is no literal: Deno must not look for it in its own import map.
const PACKAGE = "pg-boss";
const { PgBoss } = await import(PACKAGE);

const QUEUE = "noop";
// A producer supervises nothing.
const PRODUCER = { supervise: false, schedule: false, migrate: false };

serveCommands({
  async prepare({ url, queue }) {
    const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
    boss.on("error", console.error);
    await boss.start();
    await boss.createQueue(QUEUE, queue);
    await boss.stop({ graceful: false });
  },
  async openProducer({ url }) {
    const boss = new PgBoss({ connectionString: url, ...PRODUCER });
    boss.on("error", console.error);
    await boss.start();
    return {
      enqueue: (n) => boss.send(QUEUE, { n }),
      enqueueMany: (ns) => boss.insert(QUEUE, ns.map((n) => ({ data: { n } }))),
      close: () => boss.stop({ graceful: false }),
    };
  },
  async startWorker({ url, boss: options, worker }, onItem) {
    const boss = new PgBoss({ connectionString: url, ...options });
    boss.on("error", console.error);
    await boss.start();
    // The jobs of one batch run side by side, as its documentation has it.
    await boss.work(QUEUE, worker, async (jobs) => {
      await Promise.all(jobs.map((job) => onItem(job.data.n)));
      return worker.perJobResults ? jobs.map(({ id }) => ({ id, status: "completed" })) : undefined;
    });
    return { stop: () => boss.stop({ graceful: true, timeout: 10_000 }) };
  },
});
