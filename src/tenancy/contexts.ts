/**
 * The one place that mints contexts. A stage follows only from the stage below it, so a tenant can never be made up.
 *
 * @module
 */
import type { AppContext, OpContext, RequestContext, Role } from "../core/context.ts";

// W3C trace context, version 00; all-zero ids are invalid there. An invalid header is ignored, as the standard asks.
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Mints the request stage. A traceparent that is none is dropped. */
export function mintRequest(app: AppContext, requestId: string, traceparent: string | undefined): RequestContext {
  const known = traceparent !== undefined && TRACEPARENT.test(traceparent) ? { traceparent } : {};
  return Object.freeze({ requestId, app: Object.freeze({ ...app }), ...known }) as RequestContext;
}

/** What the operation stage adds to the request stage. */
export interface OpStage {
  readonly orgId: string;
  readonly userId: string;
  readonly role: Role;
  /** The request that caused this work, when it is not the request at hand. */
  readonly causedByRequestId?: string | null;
  /** Default: the request's own. Null for none: an item brings its own trace, or has none. */
  readonly traceparent?: string | null;
}

/** Mints the operation stage. The caller has read that the org lives and who the user is in it. */
export function mintOp(rctx: RequestContext, stage: OpStage): OpContext {
  const traceparent = stage.traceparent === undefined ? rctx.traceparent : stage.traceparent ?? undefined;
  const { orgId, userId, role, causedByRequestId } = stage;
  const { requestId, app } = rctx;
  // One is minted for each item: two conditional spreads would cost more than all the rest of it.
  const ctx: { -readonly [F in keyof OpContext]?: OpContext[F] } = { orgId, userId, role, requestId, app };
  if (causedByRequestId) ctx.causedByRequestId = causedByRequestId;
  if (traceparent !== undefined) ctx.traceparent = traceparent;
  return Object.freeze(ctx) as OpContext;
}
