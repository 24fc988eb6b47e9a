/** graphile-worker, by its own documentation: settings come from the table of contenders. */
import { serveCommands } from "./child.mjs";

// By a name that is no literal: Deno must not look for it in its own import map.
const PACKAGE = "graphile-worker";
const { Logger, makeWorkerUtils, run } = await import(PACKAGE);

// Its default logger writes two lines a job; nobody's log is measured.
const logger = new Logger(() => () => {});

serveCommands({
  async prepare({ url }) {
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    await utils.migrate();
    await utils.release();
  },
  async openProducer({ url }) {
    const utils = await makeWorkerUtils({ connectionString: url, logger, maxPoolSize: 10 });
    return {
      enqueue: (n) => utils.addJob("noop", { n }),
      enqueueMany: (ns) => utils.addJobs(ns.map((n) => ({ identifier: "noop", payload: { n } }))),
      close: () => utils.release(),
    };
  },
  async startWorker({ url, worker }, onItem) {
    const runner = await run({
      preset: { worker: { connectionString: url, ...worker } },
      logger,
      noHandleSignals: true,
      taskList: { noop: ({ n }) => onItem(n) },
    });
    return { stop: () => runner.stop() };
  },
});
