/**
 * Contexts where the core area cannot be reached: on a host, which knows of orgs only that its claims are theirs.
 *
 * @module
 */
import type { AppContext, OpContext, RequestContext } from "../core/context.ts";
import { ValidationError } from "../core/errors.ts";
import { EMPTY_UUID, newId } from "../core/ids.ts";
import { mintOp, mintRequest } from "./contexts.ts";
import type { ClaimSubject, TenancyManager } from "./types.ts";

/**
 * Builds the tenancy of a host: it mints the request stage, and for claimed items the service context of their org. That the
 * org lives is for the database to say: a row policy shows a host the items of the orgs on its list alone, and the sweep takes
 * orgs that have ended off it.
 *
 * @returns A manager whose every other operation throws `ValidationError`.
 */
export function createHostTenancy(): TenancyManager {
  const own: Pick<TenancyManager, "requestContext" | "claimContexts"> = {
    requestContext(app: AppContext, options: { requestId?: string; traceparent?: string } = {}): RequestContext {
      return mintRequest(app, options.requestId ?? newId(), options.traceparent);
    },
    claimContexts(rctx: RequestContext, subjects: readonly ClaimSubject[]): Promise<OpContext[]> {
      return Promise.resolve(
        subjects.map(({ orgId, causedByRequestId, traceparent }) =>
          mintOp(rctx, { orgId, userId: EMPTY_UUID, role: "SERVICE", causedByRequestId, traceparent })
        ),
      );
    },
  };
  return new Proxy(own as TenancyManager, {
    get(target, name) {
      if (typeof name === "symbol" || name === "then" || name in target) return Reflect.get(target, name);
      return () => Promise.reject(refusal(name));
    },
  });
}

function refusal(name: string): ValidationError {
  return new ValidationError(
    name,
    `Cannot ${name} on a host runner: it knows no orgs and users; ask a worker with a database`,
  );
}
