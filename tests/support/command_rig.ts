/**
 * Runs commands of a config as a host runner would, without a database.
 *
 * @module
 */
import { systemClock } from "../../src/core/clock.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { type Logger, silentLogger } from "../../src/core/log.ts";
import { openCommands } from "../../src/host/command/handler.ts";
import { parseCommandConfig } from "../../src/host/command/load.ts";
import type { AttemptRecord } from "../../src/host/types.ts";
import { mintOp, mintRequest } from "../../src/tenancy/contexts.ts";
import type { Deferral, Payload, WorkItem } from "../../src/work/types.ts";

/** The org of every item of the rig. */
export const ORG_ID = "00000000-0000-7000-8000-00000000000a";

/** How an item ended. */
export interface Ended {
  /** What the handler returned. */
  readonly returned: void | Deferral;
  /** What it threw, null for nothing. */
  readonly error: Error | null;
  readonly attempt: AttemptRecord;
}

/** Commands of one config, in a folder of their own. */
export interface CommandRig {
  /** Holds `work`, `logs` and whatever a test puts beside them. */
  readonly folder: string;
  readonly attempts: readonly AttemptRecord[];
  /** Runs an item of a kind to its end. */
  run(kind: string, payload: Payload, options?: RunOptions): Promise<Ended>;
  /** Ends it, and removes the folder. */
  dispose(): Promise<void>;
}

/** What a run may be given. */
export interface RunOptions {
  readonly signal?: AbortSignal;
  readonly item?: Partial<WorkItem>;
}

/** An item as a claim gives it. */
export function workItem(kind: string, payload: Payload, over: Partial<WorkItem> = {}): WorkItem {
  const now = new Date();
  return {
    id: newId(),
    createdAt: now,
    updatedAt: now,
    createdBy: EMPTY_UUID,
    updatedBy: EMPTY_UUID,
    kind,
    targetId: null,
    idempotencyKey: `key-${crypto.randomUUID()}`,
    payload,
    lane: "default",
    status: "claimed",
    priority: 10,
    weight: "light",
    hostPreference: null,
    availableAt: now,
    claimedBy: "rig",
    claimToken: newId(),
    leaseExpiresAt: new Date(now.getTime() + 30_000),
    attempts: 1,
    maxAttempts: 3,
    claims: 7,
    expiries: 0,
    lastError: null,
    note: null,
    auditId: null,
    requestId: null,
    traceparent: null,
    ...over,
  };
}

/** Opens the commands of `kinds`. `more` goes beside them in the config. */
export async function commandRig(
  kinds: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {},
  logger: Logger = silentLogger,
): Promise<CommandRig> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-command-" }));
  const text = JSON.stringify({ work: { base: "work" }, logs: { folder: "logs" }, kinds, ...more });
  const attempts: AttemptRecord[] = [];
  const commands = await openCommands({
    config: parseCommandConfig(text, `${folder}/commands.json`),
    host: "rig-host",
    worker: "host-runner@rig/1",
    clock: systemClock,
    logger,
    recordAttempt: (attempt) => Promise.resolve(void attempts.push(attempt)),
    ownEnv: (name) => name === "RUNNER_SECRET" ? "hidden" : undefined,
  });
  const rctx = mintRequest({ type: "WORKER", version: "rig@0" }, newId(), undefined);
  const ctx = mintOp(rctx, { orgId: ORG_ID, userId: EMPTY_UUID, role: "SERVICE" });
  return {
    folder,
    attempts,
    async run(kind, payload, options = {}): Promise<Ended> {
      const handler = commands.handlers.find((handler) => handler.kind.name === kind);
      if (handler === undefined) throw new Error(`The rig has no kind ${kind}`);
      const item = workItem(kind, payload, options.item);
      const signal = options.signal ?? new AbortController().signal;
      let returned: void | Deferral = undefined;
      let error: Error | null = null;
      try {
        returned = await handler.handle(ctx, item, {
          signal,
          attempt: item.attempts,
          fence: item.claims,
          deadline: null,
        });
      } catch (thrown) {
        error = thrown as Error;
      }
      const attempt = attempts.find(({ itemId }) => itemId === item.id);
      if (attempt === undefined) throw new Error("The run was not recorded");
      return { returned, error, attempt };
    },
    async dispose() {
      await commands.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
