/**
 * The faulty layer between processes and the store: every call of a storage becomes events of the scheduler, and a fate
 * decides whether it takes effect, and whether, when and how it is answered.
 *
 * @module
 */
import { UnavailableError } from "../../src/core/errors.ts";
import type {
  ClaimRef,
  ClaimRequest,
  ClaimState,
  OwnedItem,
  Settlement,
  WriteOutcome,
} from "../../src/work/storage.ts";
import { EPOCH_MS } from "./clocks.ts";
import { keyOf } from "./history.ts";
import { checkOthers } from "./others.ts";
import type { SimProcess } from "./process.ts";
import { checkItems, must } from "./transitions.ts";
import type { Fate, SimCall } from "./truth.ts";
import type { World } from "./world.ts";

/** What becomes of calls while their process is cut off. */
const CUT_OFF: readonly (readonly [Fate, number])[] = [
  ["refused", 0.15],
  ["vanished", 0.2],
  ["hung", 0.15],
  ["slow", 0.2],
  ["delayed", 0.15],
  ["late", 0.15],
];
const READS = /^(?:read|orgsWith|liveOrgIds|hostOrgs)/;

type Real = (...args: readonly unknown[]) => Promise<unknown>;

/** Carries calls. */
export class Network {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** `target` as `process` reaches it. */
  reach<T extends object>(process: SimProcess, room: string, target: T): T {
    const methods = new Map<string | symbol, unknown>();
    return new Proxy(target, {
      get: (original, name) => {
        const value = Reflect.get(original, name);
        if (typeof value !== "function" || typeof name !== "string") return value;
        const known = methods.get(name);
        if (known !== undefined) return known;
        const real = value.bind(original) as Real;
        const wrapped = (...args: unknown[]) => this.#call({ process, room, method: name, args }, real);
        methods.set(name, wrapped);
        return wrapped;
      },
    });
  }

  #call(asked: Pick<SimCall, "process" | "room" | "method" | "args">, real: Real): Promise<unknown> {
    const { scheduler, random, truth, trace } = this.#world;
    const { process, method } = asked;
    this.#world.guard(() => this.#leaves(asked));
    const fate = this.#fateOf(process, method);
    const call: SimCall = { ...asked, fate, sent: process.marks(), executedMs: null };
    const survives = random.chance(0.5);
    const disturbs = fate !== "ok" && !isMended(method, fate);
    if (fate !== "ok" && !disturbs && method === "extendLeases") process.renewalsFailed++;
    if (disturbs) process.disturb(1);
    if (fate !== "ok") truth.count(`fate ${fate}`);
    const { thereMs, backMs, awayMs } = this.#delays(fate, process);
    process.fly(method, 1);
    return new Promise((resolve, reject) => {
      const arrive = (ms: number, what: string, then: () => void) =>
        scheduler.after(ms, process, () => {
          if (disturbs) process.disturb(-1);
          process.fly(method, -1);
          trace.note(`${at(scheduler.nowMs)} ${process.name} ${method} ${what}`);
          then();
        });
      const lose = (ms: number, outcome: "not-executed" | "unknown") =>
        arrive(ms, outcome, () => {
          if (method === "readClaims") this.#world.guard(() => this.#arrives(call, []));
          if (method === "claim") process.claimFailed = true;
          if (method === "claim" && outcome === "unknown") process.lostTokens.add((call.args[0] as ClaimRequest).token);
          reject(new UnavailableError("the simulated storage is out of reach", outcome));
        });
      if (fate === "refused") return void lose(thereMs, "not-executed");
      if (fate === "vanished") return void lose(awayMs, "unknown");
      if (fate === "delayed") lose(thereMs, "unknown");
      scheduler.after(fate === "delayed" || fate === "slow" ? awayMs : thereMs, null, () => {
        if (process.gone && !survives) return;
        const done = this.#execute(call, real);
        if (fate === "delayed") return void done.catch(() => {});
        if (fate === "lost" || fate === "hung") {
          void done.catch(() => {});
          return void lose(fate === "lost" ? backMs : awayMs, "unknown");
        }
        void done.then(
          (answer) =>
            void arrive(fate === "late" ? awayMs : backMs, "answered", () => {
              this.#world.guard(() => this.#arrives(call, answer));
              resolve(answer);
            }),
          (error) => void arrive(backMs, `threw ${error instanceof Error ? error.name : "?"}`, () => reject(error)),
        );
      });
    });
  }

  #fateOf(process: SimProcess, method: string): Fate {
    const { random, plan, calm } = this.#world;
    const drawn = random.next();
    if (calm) return "ok";
    if (process.cutOffUntilMs > this.#world.scheduler.nowMs) {
      let left = drawn;
      for (const [fate, share] of CUT_OFF) if ((left -= share) < 0) return fate;
    }
    if (plan.strikes !== null && method !== plan.strikes) return "ok";
    let left = drawn;
    for (const [fate, share] of Object.entries(plan.fates)) if ((left -= share) < 0) return fate as Fate;
    return "ok";
  }

  #delays(fate: Fate, { cutOffUntilMs }: SimProcess): { thereMs: number; backMs: number; awayMs: number } {
    const { random, plan } = this.#world;
    const thereMs = random.skewed(plan.latencyMs, plan.latencyMs * 5);
    const backMs = random.skewed(plan.latencyMs, plan.latencyMs * 5);
    // While a process is cut off, mostly for longer than a lease.
    const cutOff = cutOffUntilMs > this.#world.scheduler.nowMs;
    const away = cutOff ? random.between(0.2, 2.5) : random.skewed(0.5, 2.5);
    const awayMs = fate === "ok" ? 0 : away * plan.leaseMs;
    return { thereMs, backMs, awayMs };
  }

  /** The call takes effect: what it changed is looked at before anything else can happen. */
  #execute(call: SimCall, real: Real): Promise<unknown> {
    const { scheduler, truth, trace } = this.#world;
    call.executedMs = scheduler.nowMs;
    const nowMs = Math.floor(EPOCH_MS + scheduler.nowMs);
    const running = real(...call.args);
    const changes = READS.test(call.method) ? [] : truth.history.take();
    return running.then((answer) => {
      trace.note(
        `${at(scheduler.nowMs)} store ${call.process.name} ${call.method} ${this.#tell(call, answer, changes.length)}`,
      );
      this.#world.guard(() => {
        const effect = { call, changes, answer, nowMs };
        checkItems(effect, truth);
        checkOthers(effect, truth);
      });
      return answer;
    });
  }

  #tell(call: SimCall, answer: unknown, changed: number): string {
    const { trace } = this.#world;
    const items = (rows: readonly { id: string }[]) => rows.map(({ id }) => trace.name("item", id)).join(" ");
    switch (call.method) {
      case "claim": {
        const token = trace.name("token", (call.args[0] as ClaimRequest).token);
        return `${items((answer as OwnedItem[]).map(({ item }) => item))} under ${token}`;
      }
      case "settle":
        return (call.args[0] as Settlement[]).map(({ id, token, to }, i) =>
          `${trace.name("item", id)} ${to} under ${trace.name("token", token)}: ${(answer as WriteOutcome[])[i]}`
        ).join(", ");
      case "extendLeases":
        return (call.args[0] as ClaimRef[]).map(({ id }, i) =>
          `${trace.name("item", id)}: ${(answer as WriteOutcome[])[i]}`
        ).join(", ");
      default:
        return changed === 0 ? "" : `changed ${changed}`;
    }
  }

  /** Judges a call as it leaves its process. */
  #leaves({ process, method, args }: Pick<SimCall, "process" | "method" | "args">): void {
    const { runs, truth } = this.#world;
    if (method === "claim") {
      runs.claiming(process);
      const lost = process.lostTokens.size;
      must(lost === 0, "lost claims", () => `${process.name} claims anew before it has looked for ${lost} lost claims`);
    }
    if (method === "extendLeases") runs.trusted(process);
    must(!process.silent, "drain", () => `${process.name} calls ${method} after its drain has ended`);
    if (method === "settle") { for (const settlement of args[0] as Settlement[]) runs.asked(process, settlement); }
    if (method !== "extendLeases" && method !== "failOrphaned") return;
    for (const { orgId, token, id } of args[0] as ClaimRef[]) {
      truth.tokens.get(token)?.touched.add(keyOf(orgId, id));
      const own = truth.tokens.get(token)?.call.process === process;
      must(own, "claims", () => `${process.name} writes ${truth.trace.name("item", id)} under no claim of its own`);
    }
  }

  /** An answer reaches its caller: what it learns is what it may be judged by from here on. */
  #arrives({ process, method, args, sent }: SimCall, answer: unknown): void {
    const { truth } = this.#world;
    if (method === "claim") {
      process.claimFailed = false;
      const token = truth.tokens.get((args[0] as ClaimRequest).token);
      if (token !== undefined) token.deliveredMs = process.marks().monotonicMs;
    }
    if (method === "extendLeases") {
      process.renewalsFailed = 0;
      (args[0] as ClaimRef[]).forEach(({ orgId, token, id }, i) => {
        const record = truth.tokens.get(token);
        const key = keyOf(orgId, id);
        if ((answer as WriteOutcome[])[i] !== "WRITTEN") this.#refused(process, token, key);
        else if (record !== undefined && sent.monotonicMs > (record.renewed.get(key)?.monotonicMs ?? -Infinity)) {
          record.renewed.set(key, sent);
          record.deliveredMs ??= process.marks().monotonicMs;
        }
      });
    }
    if (method === "readClaimed") process.lostTokens.delete(String(args[0]));
    if (method === "settle") this.#settled(process, args[0] as Settlement[], answer as WriteOutcome[]);
    if (method === "readClaims") {
      for (const ref of args[0] as ClaimRef[]) this.#readBack(process, ref, answer as ClaimState[]);
    }
  }

  /** A refused outcome is known as refused to the run it is of. */
  #settled(process: SimProcess, settlements: readonly Settlement[], outcomes: readonly WriteOutcome[]): void {
    const { runs, trace } = this.#world;
    settlements.forEach(({ orgId, id, token }, i) => {
      const record = runs.of(token, keyOf(orgId, id));
      if (outcomes[i] === "REFUSED") process.refusals.add(id);
      // Finished by an earlier write whose answer was lost, and purged since.
      if (this.#world.truth.finished.has(`${token}/${keyOf(orgId, id)}`)) return;
      if (outcomes[i] !== "REFUSED" || record === undefined || record.own !== null || record.run.signal.aborted) return;
      const known = process.refusalsTold.get(id) ?? 0;
      process.afterwards(() => {
        const told = process.refusalsTold.get(id) ?? 0;
        must(
          told > known,
          "outcomes",
          () => `${process.name} was refused ${trace.name("item", id)} and took it for written`,
        );
      });
    });
  }

  /** A renewal was refused: the run is looked up at once, or stopped. */
  #refused(process: SimProcess, token: string, key: string): void {
    const { runs, trace } = this.#world;
    const record = runs.of(token, key);
    if (record === undefined || record.end !== null || process.refused.has(record)) return;
    process.refused.add(record);
    process.afterwards(() =>
      must(
        record.end !== null || record.run.signal.aborted || process.isFlying("readClaims") ||
          !process.refused.has(record),
        "refused renewal",
        () =>
          `${process.name} was refused a renewal of ${
            trace.name("item", record.item.id)
          }, did not look why, and runs on`,
      )
    );
  }

  /** What a refused holder read back: unless it is finished under this very claim, the run is stopped at once. */
  #readBack(
    process: SimProcess,
    { orgId, id }: { readonly orgId: string; readonly id: string },
    states: readonly ClaimState[],
  ): void {
    const state = states.find((one) => one.id === id && one.orgId === orgId);
    for (const record of process.refused) {
      if (record.key !== keyOf(orgId, id)) continue;
      // Of two claims of one item in one process each looks for itself.
      if (!process.isFlying("readClaims")) process.refused.delete(record);
      const finished = state?.token === record.token && (state.status === "done" || state.status === "failed");
      if (finished || process.isFlying("readClaims")) continue;
      process.afterwards(() =>
        must(
          record.end !== null || record.run.signal.aborted,
          "refused renewal",
          () => `${process.name} lost ${this.#world.trace.name("item", id)}, read so, and runs on`,
        )
      );
    }
  }
}

/** Faults that a worker mends by itself, so that they explain no lost claim: the claim is looked for, the renewal repeated. */
function isMended(method: string, fate: Fate): boolean {
  if (method === "claim") return fate === "lost";
  return method === "extendLeases" && (fate === "lost" || fate === "refused");
}

function at(ms: number): string {
  return ms.toFixed(2);
}
