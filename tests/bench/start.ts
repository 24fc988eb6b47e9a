/**
 * How long a worker takes from its start to its first claim on Postgres, what it holds while idle, and how large it is:
 * the compiled binary when there is one, else the program from source.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import { NOTIFY_SHIPMENT } from "../../workers/shipment-notifier/kind.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import type { BenchServer } from "./server.ts";
import { countUnclaimed } from "./truth.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BINARY = `${ROOT}dist/shipment-notifier`;
const SOURCE = `${ROOT}workers/shipment-notifier/main.ts`;
const FLAGS = ["--store", "postgres", "--http-port", "0", "--log-format", "json", "--log-level", "error"];
const IDLE_MS = 3_000;
const START_MS = 30_000;

/** What a start took. */
export interface StartFigures {
  /** From exec to the first claim seen in the database. */
  readonly firstClaimMs: number;
  /** Resident memory after it was idle for a while, MiB. */
  readonly idleMiB: number;
  /** The size of the binary, MiB; null when it ran from source. */
  readonly binaryMiB: number | null;
}

/** Starts the shipment notifier once on a database where one item waits. */
export async function startOnce(server: BenchServer): Promise<StartFigures> {
  const database = await server.createOurs([...CHAINS, SHIPMENTS_CHAIN]);
  try {
    await enqueueOne(database.databases);
    const size = await Deno.stat(BINARY).then((file) => file.size, () => null);
    const [program, args] = size === null
      ? [Deno.execPath(), ["run", "-A", "--no-check", "--config", `${ROOT}deno.json`, SOURCE, ...FLAGS]]
      : [BINARY, FLAGS];
    const env = database.settings.env as Record<string, string>;
    const startMs = performance.now();
    const child = new Deno.Command(program, { args, env, stdin: "null", stdout: "null", stderr: "inherit" }).spawn();
    try {
      while (await countUnclaimed(database.query) > 0) {
        if (performance.now() - startMs > START_MS) throw new Error(`no claim within ${START_MS} ms of the start`);
        await new Promise((again) => setTimeout(again, 1));
      }
      const firstClaimMs = performance.now() - startMs;
      await new Promise((idle) => setTimeout(idle, IDLE_MS));
      const status = await Deno.readTextFile(`/proc/${child.pid}/status`);
      const idleMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
      return { firstClaimMs, idleMiB, binaryMiB: size === null ? null : size / 2 ** 20 };
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
  } finally {
    await database.drop();
  }
}

/** In words, when the binary in dist/ is of another commit than the tree; null when it is not, or there is none. */
export async function staleBinary(): Promise<string | null> {
  const output = async (program: string, ...args: string[]) => {
    const done = await new Deno.Command(program, { args, cwd: ROOT, stdin: "null" }).output().catch(() => null);
    return done?.success ? new TextDecoder().decode(done.stdout).trim() : null;
  };
  const version = await output(BINARY, "--version");
  const head = await output("git", "rev-parse", "--short=12", "HEAD");
  if (version === null || head === null || version.includes(head)) return null;
  return `start and fleet are those of the binary in dist/, ${version}, while the tree is at ${head}: compile first`;
}

type OpenStoreDatabases = Awaited<ReturnType<BenchServer["createOurs"]>>["databases"];

async function enqueueOne(databases: OpenStoreDatabases): Promise<void> {
  const DAY_MS = 86_400_000;
  const managers = createManagers({
    storages: createStorages({ engine: "postgres", databases }),
    topics: new MemoryTopics(),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [NOTIFY_SHIPMENT],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: DAY_MS,
  });
  const rctx = managers.tenancy.requestContext({ type: "WORKER", version: "bench@0" });
  const org = await managers.tenancy.createOrg(rctx, { name: "bench" });
  const ctx = await managers.tenancy.serviceContext(rctx, org.id);
  await managers.work.enqueue(ctx, {
    kind: NOTIFY_SHIPMENT.name,
    idempotencyKey: "first",
    payload: { shipmentId: newId() },
  });
}
