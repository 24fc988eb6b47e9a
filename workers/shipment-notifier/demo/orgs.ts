/**
 * The demo's orgs: made on the way, each with one user who creates its shipments.
 *
 * @module
 */
import {
  derivedId,
  type OpContext,
  type RequestContext,
  type TenancyManager,
  versionOf,
  type WorkerCommandCall,
} from "../../../mod.ts";
import type { ShipmentLine } from "../import_shipments.ts";

/** Contexts of the demo. `contextOf` makes a line's org, user and membership when it first meets the org. */
export function demoContexts(definition: WorkerCommandCall["definition"], tenancy: TenancyManager): {
  readonly rctx: RequestContext;
  contextOf(line: ShipmentLine): Promise<OpContext>;
} {
  const rctx = tenancy.requestContext({ type: "CLI", version: versionOf(definition) });
  const known = new Map<string, OpContext>();
  return {
    rctx,
    async contextOf({ orgId, orgName }) {
      const ctx = known.get(orgId) ?? await member(orgId, orgName ?? orgId);
      known.set(orgId, ctx);
      return ctx;
    },
  };

  async function member(orgId: string, name: string): Promise<OpContext> {
    // Derived, so that a second run meets the same user.
    const userId = derivedId("demo user", orgId);
    await tenancy.createOrg(rctx, { id: orgId, name });
    await tenancy.createUser(rctx, { id: userId, name: `Dispatch of ${name}`.slice(0, 200) });
    await tenancy.addMember(rctx, { orgId, userId, role: "MEMBER" });
    return await tenancy.memberContext(rctx, orgId, userId);
  }
}
