/**
 * The worker with a database of the mixed drain. Its runs do and say what a host's commands do (drain_marks.ts), as far as a
 * handler can.
 *
 * @module
 */
import { z } from "zod";
import { runWorker } from "../../src/cli/program.ts";
import type { Parts, WorkerDefinition } from "../../src/runtime/definition.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { WorkHandler, WorkItem, WorkRun } from "../../src/work/types.ts";
import { type Mode, SQL_KINDS } from "./drain_groups.ts";

/** Of each run: so long that hosts have their share. */
const RUN_MS = 25;

const kinds = SQL_KINDS.map((name) =>
  defineKind(name, { schema: z.looseObject({}), retry: { baseMs: 100, capMs: 200 } })
);

function handlers({ env }: Parts): WorkHandler[] {
  const file = Deno.openSync(env.MARKS ?? "", { append: true });
  const say = (what: string, item: WorkItem, run: WorkRun) =>
    void file.writeSync(new TextEncoder().encode(`${what} sql ${item.id} ${run.fence}\n`));
  return kinds.map((kind) => ({
    kind,
    async handle(_ctx, item, run) {
      say("start", item, run);
      await new Promise((resolve) => setTimeout(resolve, RUN_MS));
      say("end", item, run);
      const mode = item.payload.mode as Mode;
      if (mode === "fail" || (mode === "once" && run.attempt === 1)) throw new Error("it is meant to fail");
    },
  }));
}

const definition: WorkerDefinition = {
  name: "drain-worker",
  release: "1.0.0",
  kinds,
  env: ["MARKS"],
  build: (parts) => Promise.resolve({ handlers: handlers(parts) }),
};

if (import.meta.main) await runWorker(definition);
