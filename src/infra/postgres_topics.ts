/**
 * Topics over LISTEN and NOTIFY: one channel, one listening connection a process, opened with the first subscriber.
 *
 * ```
 *            subscribe          listening, probe answered
 *   (off) ───────────▶ connecting ───────────────▶ up ──┐ probe every checkMs
 *                        ▲                          │◀──┘
 *                        └── backoff 0.25 s … 2 s ◀──┘ cut, or a probe unanswered for answerMs
 * ```
 *
 * The probe is a notification to ourselves. It finds a half-open connection, which would stay silent for ever, and a
 * transaction-mode pooler, which accepts LISTEN and delivers nothing. Each time the state "up" is reached, subscribers get
 * `resubscribed`, as hints may have been lost. Whoever subscribes polls as well: this makes waking fast, not certain.
 *
 * @module
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import { type Logger, silentLogger } from "../core/log.ts";
import { type Metrics, noMetrics } from "../core/metrics.ts";
import { HintPace } from "./hint_pace.ts";
import { MemoryTopics } from "./memory_topics.ts";
import {
  type CarriedHint,
  encodeHint,
  HINT_CHANNEL,
  type TopicEvent,
  type TopicName,
  type TopicPayloads,
  type Topics,
} from "./topics.ts";

/** The connection notifications arrive on: the part of a database client that topics need. */
export interface ListenConnection {
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  query(sql: string, params: readonly string[]): Promise<unknown>;
  /** Takes leave, within `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
  /** Cuts the connection now. */
  destroy(): void;
}

/** How topics reach the database. */
export interface PostgresTopicsOptions {
  /** Runs one statement, on the system login as a hint has no tenant, with a deadline of its own. */
  run(sql: string, params: readonly string[]): Promise<unknown>;
  /**
   * Opens the listening connection, on a direct URL. Absent: nothing is listened to (behind a transaction-mode pooler
   * without a direct URL); hints of this process reach its own subscribers, other processes find work by polling.
   */
  listen?: (onNotify: (channel: string, payload: string) => void) => Promise<ListenConnection>;
  /** How often the listening connection is probed, milliseconds. Default 15 000. */
  checkMs?: number;
  /** How long a probe may stay unanswered, milliseconds. Default 5 000. */
  answerMs?: number;
  clock?: Clock;
  logger?: Logger;
  metrics?: Metrics;
}

/** The most bytes NOTIFY carries. */
export const MAX_NOTIFY_BYTES = 7_999;

const NOTIFY = "select pg_notify($1, p) from jsonb_array_elements_text($2::jsonb) as p";
// Hints that wait while one statement is in flight; the further ones are dropped, as hints may be.
const MAX_PENDING = 1_000;
// Who notifies commits after whoever notified before, and transactions that wait for that no longer share a flush.
const MAX_CARRIED = 3;
// Nor are several carried while commits are slow.
const CARRIED_QUICKLY_MS = 2;
// Hints that repeat, and say no more the second time. The others are each about something else.
const PACED: ReadonlySet<TopicName> = new Set<TopicName>(["WORK_AVAILABLE", "OUTBOX_PENDING"]);
// Under five connections a second with the jitter, also when each is cut as soon as it is up.
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MOST_MS = 2_000;
// What comes and goes is not back: said once it has held for this long.
const QUIET_MS = 1_000;

type Listener = (event: TopicEvent<TopicName>) => void;

/** Topics shared by every process on one database. */
export class PostgresTopics implements Topics {
  readonly #options: PostgresTopicsOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #local = new MemoryTopics();
  readonly #listeners = new Map<TopicName, Set<Listener>>();
  readonly #stop = new AbortController();
  readonly #probes = new Map<string, () => void>();
  readonly #pending = new Set<string>();
  readonly #paces = new Map<string, HintPace>();
  /** Hints whose time to leave has not come. */
  readonly #held = new Map<string, Promise<void>>();
  /** Since when those of a hint have been on their way, each with somebody's transaction; the oldest first. */
  readonly #carried = new Map<string, Set<{ readonly sinceMs: number }>>();
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #loop: Promise<void> | undefined;
  #connection: ListenConnection | undefined;
  #listening: boolean | undefined;
  /** The log's last word on listening. */
  #said: boolean | undefined;
  #publishing = true;
  #publishFailedMs = 0;

  constructor(options: PostgresTopicsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
  }

  /** Whether notifications are known to arrive. */
  get listening(): boolean {
    return this.#listening ?? false;
  }

  /**
   * Sends a hint. Hints published while an earlier statement is in flight leave together, equal ones once; hints of work
   * that repeat within a few milliseconds are held back for a moment and leave as one (`HintPace`). Resolves when the hint
   * was sent or given up.
   */
  publish<T extends TopicName>(topic: T, payload: TopicPayloads[T]): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve();
    if (this.#options.listen === undefined) void this.#local.publish(topic, payload);
    const text = encodeHint(topic, payload);
    if (isTooLong(text)) {
      this.#logger.warn("hint not sent: too long for NOTIFY", { topic, limitBytes: MAX_NOTIFY_BYTES });
      return Promise.resolve();
    }
    return PACED.has(topic) ? this.#paced(text) : this.#enter(text);
  }

  /**
   * The hint as a transaction may carry it, when none is held back and the last equal one left long enough ago. A
   * transaction that tells of nothing after all has held up the next hint for one gap, and no more. A few at a time: a
   * transaction that finds all places taken tells of its item by a statement of its own behind it.
   */
  carry<T extends TopicName>(topic: T, payload: TopicPayloads[T]): CarriedHint | null {
    // Without a listener of our own, our own subscribers are told here and not by the server.
    if (this.#stop.signal.aborted || this.#options.listen === undefined || !PACED.has(topic)) return null;
    const text = encodeHint(topic, payload);
    if (isTooLong(text) || this.#held.has(text) || this.#pending.has(text)) return null;
    const nowMs = this.#clock.monotonic();
    const carried = this.#carried.get(text) ?? new Set();
    const [oldest = { sinceMs: nowMs }] = carried;
    if (carried.size >= MAX_CARRIED || nowMs - oldest.sinceMs > CARRIED_QUICKLY_MS) return null;
    if (!this.#paceOf(text).take(nowMs)) return null;
    const one = { sinceMs: nowMs };
    this.#carried.set(text, carried.add(one));
    const ended = () => {
      carried.delete(one);
      if (carried.size === 0) this.#carried.delete(text);
    };
    return { text, ended };
  }

  /** Sends now, or once the gap since the last equal hint has passed; on close at once. */
  #paced(text: string): Promise<void> {
    // What waits for the statement in flight tells of this one too.
    if (this.#pending.has(text)) return this.#enter(text);
    const waitMs = this.#paceOf(text).ask(this.#clock.monotonic());
    const held = this.#held.get(text);
    if (held !== undefined) return held;
    if (waitMs === 0) return this.#enter(text);
    const sent = this.#clock.sleep(waitMs, this.#stop.signal).then(() => {
      this.#held.delete(text);
      return this.#enter(text);
    });
    this.#held.set(text, sent);
    return sent;
  }

  #paceOf(text: string): HintPace {
    const nowMs = this.#clock.monotonic();
    if (this.#paces.size >= MAX_PENDING) {
      for (const [old, pace] of this.#paces) if (pace.isOver(nowMs)) this.#paces.delete(old);
    }
    const pace = this.#paces.get(text) ?? new HintPace();
    // Beyond the bound a hint leaves unpaced.
    if (this.#paces.size < MAX_PENDING) this.#paces.set(text, pace);
    return pace;
  }

  /** Puts a hint among those of the next statement. */
  #enter(text: string): Promise<void> {
    if (this.#pending.size >= MAX_PENDING && !this.#pending.has(text)) return Promise.resolve();
    this.#pending.add(text);
    this.#next ??= this.#current.then(() => this.#send());
    return this.#next;
  }

  subscribe<T extends TopicName>(topic: T, listener: (event: TopicEvent<T>) => void): () => void {
    if (this.#options.listen === undefined) return this.#local.subscribe(topic, listener);
    const listeners = this.#listeners.get(topic) ?? new Set<Listener>();
    this.#listeners.set(topic, listeners);
    const added = listener as Listener;
    listeners.add(added);
    if (!this.#stop.signal.aborted) this.#loop ??= this.#keepListening(this.#options.listen);
    return () => listeners.delete(added);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#listeners.clear();
    await this.#local.close();
    await this.#loop;
    await Promise.all(this.#held.values());
    await (this.#next ?? this.#current);
  }

  async #send(): Promise<void> {
    this.#current = this.#next ?? this.#current;
    this.#next = undefined;
    const texts = [...this.#pending];
    this.#pending.clear();
    for (const text of texts) this.#paces.get(text)?.left(this.#clock.monotonic());
    try {
      await this.#options.run(NOTIFY, [HINT_CHANNEL, JSON.stringify(texts)]);
      if (!this.#publishing && this.#clock.monotonic() - this.#publishFailedMs >= QUIET_MS) {
        this.#logger.info("hints are sent again");
        this.#publishing = true;
      }
    } catch (error) {
      if (this.#publishing) this.#logger.warn("hints cannot be sent", { error: describeError(error) });
      this.#publishing = false;
      this.#publishFailedMs = this.#clock.monotonic();
    }
  }

  async #keepListening(listen: NonNullable<PostgresTopicsOptions["listen"]>): Promise<void> {
    const signal = this.#stop.signal;
    for (let failures = 0; !signal.aborted;) {
      try {
        const connection = await this.#connect(listen);
        if (connection !== undefined) {
          failures = 0;
          await this.#watch(connection);
        }
      } catch (error) {
        this.#becomeDown(describeError(error));
      } finally {
        this.#connection?.destroy();
        this.#connection = undefined;
      }
      const pauseMs = Math.min(BACKOFF_FIRST_MS * 2 ** failures, BACKOFF_MOST_MS);
      await this.#clock.sleep(pauseMs * (0.8 + Math.random() * 0.4), signal);
      failures++;
    }
  }

  async #connect(listen: NonNullable<PostgresTopicsOptions["listen"]>): Promise<ListenConnection | undefined> {
    const connection = await listen((channel, payload) => this.#receive(channel, payload));
    this.#connection = connection;
    await this.#bounded(connection.query(`listen ${HINT_CHANNEL}`, []), "LISTEN was not answered");
    await this.#probe(connection);
    if (this.#stop.signal.aborted) return undefined;
    this.#becomeUp();
    return connection;
  }

  async #watch(connection: ListenConnection): Promise<void> {
    const signal = this.#stop.signal;
    let gone = false;
    const waking = new AbortController();
    using either = eitherOf(signal, waking.signal);
    const wake = either.signal;
    connection.closed.then(() => {
      gone = true;
      waking.abort();
    });
    if (this.#said === false) {
      await this.#clock.sleep(QUIET_MS, wake);
      if (!wake.aborted) this.#sayUp();
    }
    while (!signal.aborted) {
      await this.#clock.sleep(this.#options.checkMs ?? 15_000, wake);
      if (signal.aborted) break;
      if (gone) throw new Error("the listening connection was cut");
      await this.#probe(connection);
    }
    await connection.close();
  }

  async #probe(connection: ListenConnection): Promise<void> {
    const id = crypto.randomUUID();
    const answered = new Promise<void>((resolve) => this.#probes.set(id, resolve));
    const sent = connection.query("select pg_notify($1, $2)", [HINT_CHANNEL, JSON.stringify({ probe: id })]);
    try {
      await this.#bounded(Promise.all([sent, answered]), "a notification to ourselves did not arrive");
    } finally {
      this.#probes.delete(id);
    }
  }

  /** Waits for `work`, at most `answerMs`; returns early when topics are being closed. */
  async #bounded(work: Promise<unknown>, why: string): Promise<void> {
    const waiting = new AbortController();
    let settled = false;
    const done = work.then(() => void (settled = true)).finally(() => waiting.abort());
    // What loses the race may be rejected later, when the connection is cut.
    done.catch(() => {});
    const answerMs = this.#options.answerMs ?? 5_000;
    using over = eitherOf(waiting.signal, this.#stop.signal);
    await Promise.race([
      done,
      this.#clock.sleep(answerMs, over.signal).then(() => waiting.signal.aborted ? done : undefined),
    ]);
    if (!settled && !this.#stop.signal.aborted) throw new Error(`${why} within ${answerMs} ms`);
  }

  #becomeUp(): void {
    if (this.#listening !== undefined) (this.#options.metrics ?? noMetrics).count("laneway_listener_reconnects_total");
    if (this.#said === undefined) this.#sayUp();
    this.#listening = true;
    for (const topic of this.#listeners.keys()) this.#deliver(topic, { type: "resubscribed" });
  }

  #sayUp(): void {
    this.#logger.info("listening for hints");
    this.#said = true;
  }

  #becomeDown(error: string): void {
    if (this.#said !== false) this.#logger.warn("not listening for hints, polling only", { error });
    this.#said = false;
    this.#listening = false;
  }

  #receive(channel: string, text: string): void {
    if (channel !== HINT_CHANNEL) return;
    const message = parse(text);
    if (message === null) return;
    if (typeof message.probe === "string") return this.#probes.get(message.probe)?.();
    // An unknown topic is a newer build's.
    if (typeof message.topic !== "string" || typeof message.payload !== "object" || message.payload === null) return;
    this.#deliver(message.topic as TopicName, {
      type: "message",
      payload: message.payload,
    } as TopicEvent<TopicName>);
  }

  #deliver(topic: TopicName, event: TopicEvent<TopicName>): void {
    for (const listener of [...this.#listeners.get(topic) ?? []]) {
      try {
        listener(event);
      } catch (error) {
        this.#logger.error("a subscriber failed on a hint", { topic, error: describeError(error) });
      }
    }
  }
}

function isTooLong(text: string): boolean {
  return text.length * 3 > MAX_NOTIFY_BYTES && new TextEncoder().encode(text).length > MAX_NOTIFY_BYTES;
}

function parse(text: string): { probe?: unknown; topic?: unknown; payload?: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}
