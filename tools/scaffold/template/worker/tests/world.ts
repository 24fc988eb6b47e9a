/**
 * What the worker's tests share: a member's context, claims, and an effect that is watched.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { OpContext, RequestContext, WorkItem, WorkRun } from "laneway";
import type { TestContainer } from "../container.ts";
import type { EffectRun, HandleSampleRecordEffect } from "../effect.ts";
import type { HandleSampleRecordPayload } from "../kind.ts";
import { LANE } from "../sample_records/manager.ts";
import type { SampleRecord } from "../sample_records/types.ts";

/** An effect that notes how often it was made, under which id, and does what a test wants. */
export class WatchedEffect implements HandleSampleRecordEffect {
  readonly made: { readonly id: string; readonly effectId: string }[] = [];
  readonly #then: (run: EffectRun, times: number) => Promise<void>;

  constructor(then: (run: EffectRun, times: number) => Promise<void> = () => Promise.resolve()) {
    this.#then = then;
  }

  async perform(_ctx: OpContext, { id }: SampleRecord, run: EffectRun): Promise<void> {
    this.made.push({ id, effectId: run.effectId });
    await this.#then(run, this.made.filter((one) => one.id === id).length);
  }
}

/** A request stage. */
export function request({ managers }: Pick<TestContainer, "managers">): RequestContext {
  return managers.tenancy.requestContext({ type: "WORKER", version: "sample-worker@test" });
}

/** A member of a fresh org. */
export async function member(container: Pick<TestContainer, "managers">): Promise<OpContext> {
  const { tenancy } = container.managers;
  const rctx = request(container);
  const org = await tenancy.createOrg(rctx, { name: "Łódź" });
  const user = await tenancy.createUser(rctx, { name: "Ada" });
  await tenancy.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
  return await tenancy.memberContext(rctx, org.id, user.id);
}

/** Claims the one item that is due. */
export async function claimOne(
  container: Pick<TestContainer, "managers">,
): Promise<{ readonly ctx: OpContext; readonly item: WorkItem<HandleSampleRecordPayload> }> {
  const options = { lane: LANE, kinds: ["HANDLE_SAMPLE_RECORD"], worker: "test", leaseMs: 30_000, limit: 100 };
  const [claimed, ...others] = await container.managers.work.claim(request(container), options);
  assert.ok(claimed, "nothing was due");
  assert.equal(others.length, 0);
  return claimed as { ctx: OpContext; item: WorkItem<HandleSampleRecordPayload> };
}

/** A run as the loop gives it. */
export function runOf(fields: Partial<WorkRun> = {}): WorkRun {
  return { signal: new AbortController().signal, attempt: 1, fence: 1, deadline: null, ...fields };
}
