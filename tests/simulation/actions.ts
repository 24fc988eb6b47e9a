/**
 * What befalls a world from outside its code: crashes, pauses, clocks that jump, stops, outages, orgs and members that go.
 *
 * @module
 */
import { createStorages } from "../../src/storages.ts";
import { keyOf } from "./history.ts";
import type { ActionName } from "./plan.ts";
import type { SimProcess } from "./process.ts";
import type { World } from "./world.ts";

/** Befalls. */
export class Actions {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Lets each kind of action of the plan come again and again, until peace. */
  begin(): void {
    for (const [name, everyMs] of Object.entries(this.#world.plan.actions)) this.#plan(name as ActionName, everyMs);
  }

  #plan(name: ActionName, everyMs: number): void {
    const { scheduler, random } = this.#world;
    scheduler.after(random.between(0.2, 1.8) * everyMs, null, () => {
      if (this.#world.calm) return;
      this.#world.truth.count(`action ${name}`);
      this.#act(name);
      this.#plan(name, everyMs);
    });
  }

  #act(name: ActionName): void {
    const { random, plan } = this.#world;
    const workers = this.#world.workers();
    if (name === "end-org") return this.#endOrg();
    if (name === "end-member") return this.#endMember();
    if (workers.length === 0) return;
    const process = random.pick(workers);
    switch (name) {
      case "crash":
        return this.#world.crash(process, "fate");
      case "freeze":
        return process.hold(random.skewed(plan.leaseMs * 0.7, plan.leaseMs * 2.5), false);
      case "suspend":
        return process.hold(random.between(plan.leaseMs * 0.2, plan.leaseMs * 3), true);
      case "jump":
        // A machine whose clock is set has often lost its network too.
        if (random.chance(0.5)) this.#cutOff([process], random.between(0.5, 2.5) * plan.leaseMs);
        return process.jump(random.between(-1, 0.6) * random.pick([1_000, 20_000, 600_000]));
      case "drain":
        void process.drain(random.chance(0.2));
        return this.#world.respawn(process);
      case "outage": {
        const ms = random.between(0.2, 2) * plan.leaseMs;
        const cut = random.chance(0.4) ? workers : [process];
        return this.#cutOff(cut, ms);
      }
    }
  }

  #cutOff(processes: readonly SimProcess[], ms: number): void {
    const { trace, scheduler } = this.#world;
    trace.note(`${processes.map(({ name }) => name).join(" ")} cut off for ${Math.round(ms)} ms`);
    for (const process of processes) process.cutOffUntilMs = scheduler.nowMs + ms;
  }

  #endOrg(): void {
    const { truth, scheduler, members, trace, db } = this.#world;
    const live = [...new Set(members.map(({ org }) => org))].filter((org) => !truth.endedOrgs.has(org));
    const [org] = live;
    if (live.length < 2 || org === undefined) return;
    trace.note(`${trace.name("org", org)} ends`);
    truth.endedOrgs.set(org, scheduler.nowMs);
    void createStorages({ engine: "sqlite", db }).tenancy.endOrg(org);
  }

  #endMember(): void {
    const { members, random, db, trace } = this.#world;
    const { org, user } = random.pick(members);
    this.#world.truth.leftMembers.set(keyOf(org, user), this.#world.scheduler.nowMs);
    trace.note(`${trace.name("user", user)} leaves ${trace.name("org", org)}`);
    void createStorages({ engine: "sqlite", db }).tenancy.endMembership(org, user);
  }
}
