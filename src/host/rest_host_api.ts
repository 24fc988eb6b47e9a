/**
 * A host's own rows over REST: heartbeat, count, attempts.
 *
 * @module
 */
import * as z from "zod";
import type { Clock } from "../core/clock.ts";
import { boundText } from "../core/describe_error.ts";
import { ValidationError } from "../core/errors.ts";
import { wordsOf } from "../core/shape_words.ts";
import type { DatabaseTime } from "./database_time.ts";
import type { RestClient } from "./rest_client.ts";
import { eq } from "./rest_filters.ts";
import type { AttemptRecord, HostApi, HostBeat, HostRow, HostWindow } from "./types.ts";

/** What it is made of. */
export interface RestHostApiOptions {
  readonly client: RestClient;
  /** The host's name, which its key names too. */
  readonly host: string;
  readonly clock: Clock;
  /** Is told of the database's time by each heartbeat. */
  readonly time: DatabaseTime;
  /** Reads the windows of the row; throws when they cannot be read. */
  readonly parseWindows: (value: unknown) => readonly HostWindow[];
}

const TAIL_BYTES = 16_384;
const time = z.string().transform((text) => new Date(text));
const schema = z.object({
  name: z.string(),
  enabled: z.boolean(),
  org_ids: z.array(z.uuid()),
  kinds: z.array(z.string()),
  weights: z.array(z.string()),
  priority_floor: z.int(),
  lane: z.string(),
  windows: z.unknown(),
  last_heartbeat_at: time.nullable(),
  current_workers: z.int(),
});

/** Builds a host's API. */
export function createRestHostApi(options: RestHostApiOptions): HostApi {
  return new RestHostApi(options);
}

class RestHostApi implements HostApi {
  readonly #o: RestHostApiOptions;

  constructor(options: RestHostApiOptions) {
    this.#o = options;
  }

  async beat(currentWorkers: number | null): Promise<HostBeat | null> {
    const { client, host, clock } = this.#o;
    const { rows } = await client.call({
      method: "PATCH",
      path: "/hosts",
      filters: [eq("name", host), ["select", "*"]],
      repeatable: true,
      body: {
        last_heartbeat_at: "now",
        updated_at: "now",
        ...(currentWorkers === null ? {} : { current_workers: currentWorkers }),
      },
    });
    const answeredMonotonicMs = clock.monotonic();
    const [raw] = rows;
    if (raw === undefined) return null;
    // Before the rest of the row is read: leases need the time whatever stands there.
    const databaseMs = Date.parse(String(raw.last_heartbeat_at));
    this.#o.time.note(databaseMs);
    return { row: this.#toRow(raw), databaseMs, answeredMonotonicMs };
  }

  async read(): Promise<HostRow | null> {
    const { client, host } = this.#o;
    const { rows: [raw] } = await client.call({ method: "GET", path: "/hosts", filters: [eq("name", host)] });
    return raw === undefined ? null : this.#toRow(raw);
  }

  async countInFlight(): Promise<number> {
    const { client, host } = this.#o;
    const { rows, total } = await client.call({
      method: "GET",
      path: "/work_items",
      filters: [
        eq("host", host),
        eq("status", "claimed"),
        ["lease_expires_at", "gt.now"],
        ["select", "id"],
        ["limit", "1"],
      ],
      prefer: "count=exact",
    });
    return total ?? rows.length;
  }

  async recordAttempt(attempt: AttemptRecord): Promise<void> {
    await this.#o.client.call({
      method: "POST",
      path: "/attempts",
      repeatable: true,
      filters: [["on_conflict", "org_id,item_id,claim_token"]],
      prefer: "resolution=ignore-duplicates,return=minimal",
      body: {
        org_id: attempt.orgId,
        item_id: attempt.itemId,
        claim_token: attempt.claimToken,
        attempt: attempt.attempt,
        host: this.#o.host,
        worker: attempt.worker,
        started_at: attempt.startedAt,
        finished_at: attempt.finishedAt,
        duration_ms: attempt.durationMs,
        outcome: attempt.outcome,
        reason: attempt.reason,
        exit_code: attempt.exitCode,
        signal: attempt.signal,
        stdout_tail: storable(attempt.stdoutTail),
        stderr_tail: storable(attempt.stderrTail),
        stdout_cut_bytes: attempt.stdoutCutBytes,
        stderr_cut_bytes: attempt.stderrCutBytes,
      },
    });
  }

  /** @throws {ValidationError} It cannot be read: nothing may be claimed by it. */
  #toRow(raw: unknown): HostRow {
    const parsed = schema.safeParse(raw, { error: wordsOf });
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const path = ["hosts", ...issue?.path ?? []].map(String).join(".");
      throw new ValidationError(path, `Cannot read the row of host ${this.#o.host} at ${path}: ${issue?.message}`);
    }
    const row = parsed.data;
    return {
      name: row.name,
      enabled: row.enabled,
      orgIds: row.org_ids,
      kinds: row.kinds,
      weights: row.weights,
      priorityFloor: row.priority_floor,
      lane: row.lane,
      windows: this.#o.parseWindows(row.windows),
      lastHeartbeatAt: row.last_heartbeat_at,
      currentWorkers: row.current_workers,
    };
  }
}

/** The end of a text, as Postgres can store it and the table takes it. */
function storable(text: string): string {
  const clean = boundText(text, Infinity).slice(-TAIL_BYTES);
  if (new TextEncoder().encode(clean).length <= TAIL_BYTES) return clean.toWellFormed();
  // At most three bytes a unit.
  return clean.slice(-Math.floor(TAIL_BYTES / 3)).toWellFormed();
}
