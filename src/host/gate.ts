/**
 * The host's gate: keeps its row of `queue.hosts` read and its heartbeat written, idle or busy, and answers before each
 * claim what may be claimed. Fails closed; what runs already is never touched by it.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { isInstance, UnavailableError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { DatabaseTime } from "./database_time.ts";
import { KeyRefusedError } from "./rest_key.ts";
import { decideClaim, excessOf, isAllowance } from "./policy_rules.ts";
import type { ClaimAllowance, ClaimRefusal, HostApi, HostRow, Notifier } from "./types.ts";
import { nextOpening, openWindow } from "./windows.ts";

/** What a gate is made of. */
export interface HostGateOptions {
  readonly api: HostApi;
  /** The database's time, as the heartbeats tell it. */
  readonly time: Pick<DatabaseTime, "now">;
  /** The host's name, a key of `queue.hosts`. */
  readonly host: string;
  /** The lane this runner works on. */
  readonly lane: string;
  /** The kinds this runner has a command for. */
  readonly kinds: readonly string[];
  /** How old a read of the row may be for a claim, and how often the heartbeat is written, milliseconds. */
  readonly pollMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly notifier: Notifier;
  /** Called when the cap held a claim back and an item has ended since: another may fit. */
  readonly onRoom?: () => void;
  /** Randomness in [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

/** A read of the row. */
interface Reading {
  readonly row: HostRow | null;
  /** When it was asked for: the row was at least as new. */
  readonly sentMs: number;
}

/** What a decision goes by. */
interface Known {
  readonly row: HostRow | null;
  readonly atMs: number;
}

// Hosts started together drift apart; never later than a poll.
const JITTER = 0.1;

/** Decides for one host, in one runner. */
export class HostGate {
  readonly #o: HostGateOptions;
  #reading: Reading | null = null;
  /** Why the row cannot be read; null while the last try read it. */
  #failure: unknown = null;
  #ticking: Promise<void> | null = null;
  /** The log's last word on claims. */
  #said: string | null = null;
  #atCap = false;
  /** Whether the cap let the last claim have less than it asked for. */
  #heldBack = false;
  /** Why the heartbeat cannot be written; null while the last try wrote it. */
  #beatFailure: unknown = null;
  #countFailed = false;
  /** Aborts with the runner's end, which ends calls on their way: no news for anybody. */
  #stop: AbortSignal | null = null;

  constructor(options: HostGateOptions) {
    this.#o = options;
  }

  /** Writes the heartbeat every poll until `stop`, the first at once. Never throws. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, pollMs, random = Math.random } = this.#o;
    this.#stop = stop;
    while (!stop.aborted) {
      const nextMs = clock.monotonic() + pollMs * (1 - JITTER * random());
      await this.tick();
      await clock.sleep(Math.max(nextMs - clock.monotonic(), 0), stop);
    }
  }

  /** One heartbeat, with a fresh count of what is in flight, and the row read back. Calls at once share one. Never throws. */
  tick(): Promise<void> {
    this.#ticking ??= this.#tick().finally(() => this.#ticking = null);
    return this.#ticking;
  }

  /**
   * What may be claimed now, at most `limit`. Goes by a row read at most a poll ago, and by a count made for this call.
   *
   * @throws {UnavailableError} The database is out of reach: nothing may be claimed.
   */
  async allow(limit: number): Promise<ClaimAllowance | ClaimRefusal> {
    const { clock, pollMs, api } = this.#o;
    // By when this was called: a slow answer must not make the read that it brings too old.
    const notBeforeMs = clock.monotonic() - pollMs;
    if (!this.#isSince(notBeforeMs)) await this.tick();
    const known = this.#known();
    if (known === null || !this.#isSince(notBeforeMs)) return this.#refuseUnread();
    const before = this.#decide(known, { limit, inFlight: null });
    const answer = isAllowance(before) ? this.#decide(known, { limit, inFlight: await api.countInFlight() }) : before;
    this.#heldBack = isAllowance(answer) ? answer.limit < limit : answer.reason === "at-cap";
    this.#note(answer, known.atMs);
    return answer;
  }

  /**
   * How many of `claimed` items, claimed just now, are above the cap: two runners of one host that counted at the same
   * moment each thought there was room. To be handed back. 0 when they cannot be counted: the next claim counts again.
   */
  async excess(claimed: number): Promise<number> {
    const atMs = this.#o.time.now();
    if (claimed === 0 || atMs === null) return 0;
    try {
      const inFlight = await this.#o.api.countInFlight();
      return Math.min(claimed, excessOf(this.#reading?.row ?? null, atMs, inFlight));
    } catch (error) {
      this.#o.logger.warn("host.count_failed", { error: describeError(error) });
      return 0;
    }
  }

  /** Items were handed back: where the cap held a claim back, the next one need not wait for a poll. */
  settled(): void {
    if (!this.#heldBack) return;
    this.#heldBack = false;
    this.#o.onRoom?.();
  }

  #isSince(monotonicMs: number): boolean {
    return this.#reading !== null && this.#reading.sentMs >= monotonicMs;
  }

  async #tick(): Promise<void> {
    await this.#beat(await this.#count());
    const known = this.#known();
    if (known === null || this.#failure !== null) return;
    // A busy runner asks for no claim, and is to say that it was switched off all the same.
    const answer = this.#decide(known, { limit: 1, inFlight: null });
    if (!isAllowance(answer)) this.#note(answer, known.atMs);
  }

  async #count(): Promise<number | null> {
    try {
      const count = await this.#o.api.countInFlight();
      this.#countFailed = false;
      return count;
    } catch (error) {
      this.#warnOnce(this.#countFailed, "host.count_failed", error);
      this.#countFailed = true;
      return null;
    }
  }

  async #beat(inFlight: number | null): Promise<void> {
    const { api, clock, notifier, host } = this.#o;
    const sentMs = clock.monotonic();
    try {
      const beat = await api.beat(inFlight);
      if (this.#beatFailure !== null) this.#o.logger.info("host.heartbeat_back");
      this.#beatFailure = null;
      this.#reading = { row: beat?.row ?? null, sentMs };
      this.#failure = null;
    } catch (error) {
      this.#warnOnce(this.#beatFailure !== null, "host.heartbeat_failed", error);
      this.#beatFailure = error;
      await this.#readOnly();
      // Where nothing can be reached the claims say so, a refused key its ring: one trouble is one notice.
      if (isInstance(this.#failure, UnavailableError) || isInstance(error, KeyRefusedError)) return;
      notifier.notify("heartbeat failed", `Host ${host} cannot write its heartbeat: ${describeError(error)}`);
    }
  }

  /** The heartbeat is for people; where only its write is lost, claims go on by the row as it reads. */
  async #readOnly(): Promise<void> {
    const sentMs = this.#o.clock.monotonic();
    try {
      this.#reading = { row: await this.#o.api.read(), sentMs };
      this.#failure = null;
    } catch (error) {
      this.#failure = error;
    }
  }

  /** The row and the time to go by. Without a row no time is needed to know that nothing may be claimed. */
  #known(): Known | null {
    if (this.#reading === null) return null;
    const { row } = this.#reading;
    const atMs = row === null ? 0 : this.#o.time.now();
    return atMs === null ? null : { row, atMs };
  }

  #decide(known: Known, asked: { limit: number; inFlight: number | null }): ClaimAllowance | ClaimRefusal {
    const { host, kinds, lane } = this.#o;
    return decideClaim({ host, kinds, lane, ...known, ...asked });
  }

  #refuseUnread(): ClaimRefusal {
    const { host } = this.#o;
    if (this.#failure !== null && !isInstance(this.#failure, UnavailableError)) {
      // It was answered, with what cannot be used: another try brings the same, so this is no outage.
      const said = `the row of host ${host} cannot be read: ${describeError(this.#failure)}`;
      const answer: ClaimRefusal = { reason: "no-row", said };
      this.#note(answer, null);
      return answer;
    }
    const cause = this.#failure ?? this.#beatFailure;
    const why = this.#failure === null && this.#beatFailure !== null
      ? "its heartbeat, which alone tells the database's time that leases go by, has never been written"
      : "its row and the database's time were not read within a poll";
    const text = `Cannot claim for host ${host} as ${why}`;
    throw new UnavailableError(text, "not-executed", cause === null ? {} : { cause });
  }

  /** One line a change of reason, not one a poll. */
  #note(answer: ClaimAllowance | ClaimRefusal, atMs: number | null): void {
    const { logger, host } = this.#o;
    const wasAtCap = this.#atCap;
    this.#atCap = !isAllowance(answer) && answer.reason === "at-cap";
    if (!isAllowance(answer) && this.#atCap) {
      // How a busy host stands: it comes and goes with every item, so it is no change worth a line for people.
      if (!wasAtCap) logger.debug("host.claims_nothing", { host, ...answer });
      return;
    }
    const windows = this.#reading?.row?.windows ?? [];
    const window = atMs === null ? null : openWindow(windows, atMs);
    const said = isAllowance(answer) ? `claims ${window?.name} ${window?.maxInFlight}` : answer.said;
    if (this.#said === said) return;
    this.#said = said;
    if (isAllowance(answer)) {
      logger.info("host.claims", { host, window: window?.name, maxInFlight: window?.maxInFlight });
      return;
    }
    const opensMs = answer.reason === "window-closed" && atMs !== null ? nextOpening(windows, atMs) : null;
    logger.info("host.claims_nothing", {
      host,
      ...answer,
      ...(opensMs === null ? {} : { opensAt: new Date(opensMs).toISOString() }),
    });
  }

  #warnOnce(already: boolean, event: string, error: unknown): void {
    if (!already && !this.#stop?.aborted) this.#o.logger.warn(event, { error: describeError(error) });
  }
}
