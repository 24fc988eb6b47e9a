/**
 * What the worker's tests share: a member's context, shipments, and claims.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type ClaimedItem,
  newId,
  type OpContext,
  type RequestContext,
  type WorkItem,
  type WorkRun,
} from "../../../mod.ts";
import type { TestContainer } from "../container.ts";
import type { NotifyShipmentPayload } from "../kind.ts";
import type { NewShipment } from "../shipments/types.ts";

/** A request stage. */
export function request({ managers }: Pick<TestContainer, "managers">): RequestContext {
  return managers.tenancy.requestContext({ type: "WORKER", version: "shipment-notifier@test" });
}

/** A member of a fresh org. */
export async function member(container: Pick<TestContainer, "managers">): Promise<OpContext> {
  const { tenancy } = container.managers;
  const rctx = request(container);
  const [org, user] = [
    await tenancy.createOrg(rctx, { name: "Łódź" }),
    await tenancy.createUser(rctx, { name: "Ada" }),
  ];
  await tenancy.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
  return await tenancy.memberContext(rctx, org.id, user.id);
}

/** A shipment as a caller gives it. */
export function newShipment(webhookUrl: string, fields: Partial<NewShipment> = {}): NewShipment & { id: string } {
  return {
    id: newId(),
    carrier: "DHL",
    trackingNumber: "00340434161094042557",
    recipientName: "山田 太郎",
    destination: "大阪市, JP",
    webhookUrl,
    ...fields,
  };
}

/** Claims what is due. */
export function claim(container: Pick<TestContainer, "managers">, lane = "default"): Promise<ClaimedItem[]> {
  const options = { lane, kinds: ["NOTIFY_SHIPMENT"], worker: "test", leaseMs: 30_000, limit: 100 };
  return container.managers.work.claim(request(container), options);
}

/** Claims the one item that is due. */
export async function claimOne(
  container: Pick<TestContainer, "managers">,
): Promise<{ ctx: OpContext; item: WorkItem<NotifyShipmentPayload> }> {
  const [claimed, ...others] = await claim(container);
  assert.ok(claimed, "nothing was due");
  assert.equal(others.length, 0);
  return claimed as { ctx: OpContext; item: WorkItem<NotifyShipmentPayload> };
}

/** A run as the loop gives it. */
export function runOf(fields: Partial<WorkRun> = {}): WorkRun {
  return { signal: new AbortController().signal, attempt: 1, fence: 1, deadline: null, ...fields };
}
