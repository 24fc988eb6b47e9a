/**
 * Wires a host runner's own parts: the REST client, the gate, the storage over both, and managers over that.
 *
 * @module
 */
import type { AuditManager } from "../audit/types.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { IdempotencyManager } from "../idempotency/types.ts";
import { MemoryTopics } from "../infra/memory_topics.ts";
import type { Topics } from "../infra/topics.ts";
import type { Managers } from "../managers.ts";
import type { OutboxRelay } from "../outbox/types.ts";
import { createHostTenancy } from "../tenancy/host_contexts.ts";
import type { WorkKind } from "../work/types.ts";
import { createWorkManager } from "../work/work_manager.ts";
import { absentManager } from "./absent.ts";
import { DatabaseTime } from "./database_time.ts";
import { HostGate } from "./gate.ts";
import { RestClient } from "./rest_client.ts";
import { createRestHostApi } from "./rest_host_api.ts";
import { RestWorkStorage } from "./rest_storage.ts";
import type { HostApi, Notifier } from "./types.ts";
import { parseWindows } from "./windows.ts";

/** What a host runner is built from. */
export interface OpenHostOptions {
  /** Where PostgREST answers, without a slash at its end. */
  readonly url: string;
  /** Reads the key, its file anew each time. */
  readonly readKey: () => string | Promise<string>;
  /** What Supabase's gateway asks for beside the key; null: the key itself. */
  readonly apiKey: string | null;
  /** Of one call, milliseconds. */
  readonly timeoutMs: number;
  /** The host's name in `queue.hosts`. */
  readonly host: string;
  /** The lane it works on. */
  readonly lane: string;
  /** The kinds with a command. */
  readonly kinds: readonly WorkKind[];
  /** Those of them that are claimed; default all. */
  readonly claimed?: readonly string[];
  /** How often the heartbeat is written and the row read, milliseconds. */
  readonly pollMs: number;
  /** Hands completions on and wakes the loop. Default one of its own. */
  readonly topics?: Topics;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Counts and gauges. */
  readonly metrics: Metrics;
  /** Is told of a refused key and of heartbeats that fail. */
  readonly notifier: Notifier;
  /** Aborts when the process is told to stop: nothing is claimed any more. */
  readonly signal?: AbortSignal | undefined;
}

/** A host runner's parts. Its gate beats from the first on. */
export interface OpenHost {
  /** Its own rows. */
  readonly api: HostApi;
  /** `work` claims and settles, `tenancy` mints what a claim runs under; everything else rejects. */
  readonly managers: Managers;
  /** Wakes its loop. */
  readonly topics: Topics;
  /** Rejects when the server does not answer. */
  ping(): Promise<void>;
  /** Writes a last heartbeat, bounded, and ends it. */
  close(): Promise<void>;
}

// A server that does not answer holds up no end.
const LAST_BEAT_MS = 1_000;
// Retentions are kept by workers with a database; a completed row is left for them to move.
const KEPT_MS = 1;

/** Builds the parts and begins the heartbeat. Nothing is waited for: a server that is away is asked again. */
export function openHost(options: OpenHostOptions): OpenHost {
  const { clock, logger, notifier, host, url, readKey, timeoutMs } = options;
  const topics = options.topics ?? new MemoryTopics();
  // Not the process's stop signal, which ends claims alone: while it drains, what has ended is still to be handed back, and
  // repeated if need be.
  const closing = new AbortController();
  const client = new RestClient({
    ...{ url, readKey, timeoutMs, clock, logger, notifier, stop: closing.signal },
    ...(options.apiKey === null ? {} : { apiKey: options.apiKey }),
  });
  const time = new DatabaseTime(clock);
  const api = createRestHostApi({ client, host, clock, time, parseWindows });
  const gate = new HostGate({
    ...{ api, time, host, clock, logger, notifier },
    lane: options.lane,
    kinds: options.claimed ?? options.kinds.map((kind) => kind.name),
    pollMs: options.pollMs,
    onRoom: () => void topics.publish("WORK_AVAILABLE", { lane: null }),
  });
  const beating = gate.run(closing.signal);
  return {
    ...{ api, topics },
    managers: managersOf(new RestWorkStorage({ client, gate, time, stop: options.signal }), { ...options, topics }),
    async ping() {
      await api.read();
    },
    async close() {
      // The row's last word is what the host holds then, and not what it held while it drained.
      const told = new AbortController();
      await Promise.race([gate.tick().then(() => told.abort()), clock.sleep(LAST_BEAT_MS, told.signal)]);
      told.abort();
      closing.abort();
      await beating;
      await topics.close();
    },
  };
}

function managersOf(
  storage: RestWorkStorage,
  { topics, clock, logger, metrics, kinds }: Pick<OpenHostOptions, "clock" | "logger" | "metrics" | "kinds"> & {
    readonly topics: Topics;
  },
): Managers {
  const tenancy = createHostTenancy();
  const audit = absentManager<AuditManager>("audit entries");
  const work = createWorkManager({
    ...{ storage, tenancy, audit: null, topics, clock, logger, metrics, kinds },
    itemRetentionMs: KEPT_MS,
    keyRetentionMs: KEPT_MS,
  });
  const outbox = absentManager<OutboxRelay>("outbox rows");
  const idempotency = absentManager<IdempotencyManager>("requests that take effect once");
  return { tenancy, work, audit, outbox, idempotency };
}
