/**
 * What this worker adds to the sweep. Each step visits only orgs with something due, a page at a time.
 *
 * @module
 */
import type { OpContext, RequestContext, SweepStep, TenancyManager } from "../../mod.ts";
import type { OrgPage, ShipmentManager } from "./shipments/types.ts";

const ORGS_A_PAGE = 100;

/** Resumes parked shipments before the outbox is relayed, and removes deleted ones whose retention has passed. */
export function shipmentSweepSteps(
  shipments: Pick<ShipmentManager, "orgsWithParked" | "resumeParked" | "orgsWithDeleted" | "purgeDeletedShipments">,
  tenancy: Pick<TenancyManager, "serviceContextsOf">,
): SweepStep[] {
  return [
    perOrg(tenancy, {
      name: "resume-parked",
      before: "relay-outbox",
      orgs: (rctx, page) => shipments.orgsWithParked(rctx, page),
      run: async (ctx) => (await shipments.resumeParked(ctx)).resumed,
    }),
    perOrg(tenancy, {
      name: "purge-deleted-shipments",
      before: "purge-markers",
      every: 6,
      orgs: (rctx, page) => shipments.orgsWithDeleted(rctx, page),
      run: (ctx) => shipments.purgeDeletedShipments(ctx),
    }),
  ];
}

interface PerOrg {
  readonly name: string;
  readonly before: string;
  /** Its turn comes once in so many intervals. */
  readonly every?: number;
  /** The orgs with something due. */
  readonly orgs: (rctx: RequestContext, page: OrgPage) => Promise<string[]>;
  /** One batch of one org. Returns how many rows it moved. */
  readonly run: (ctx: OpContext) => Promise<number>;
}

/**
 * A step over orgs. The next run goes on behind the last org of this one: orgs that have ended stay due for ever and are
 * passed over, and must not keep the living from their turn; nor must one that fails.
 */
function perOrg(tenancy: Pick<TenancyManager, "serviceContextsOf">, step: PerOrg): SweepStep {
  let afterOrgId: string | null = null;
  return {
    name: step.name,
    before: step.before,
    every: step.every,
    async run(rctx) {
      const ids = await step.orgs(rctx, { afterOrgId, limit: ORGS_A_PAGE });
      afterOrgId = ids.length < ORGS_A_PAGE ? null : ids.at(-1) ?? null;
      let count = 0;
      // One batch an org and pass: what is resumed is spread over the time until the next.
      const failures: unknown[] = [];
      for (const ctx of await tenancy.serviceContextsOf(rctx, ids)) {
        count += await step.run(ctx).catch((error) => void failures.push(error)) ?? 0;
      }
      if (failures.length > 0) throw failures[0];
      return { count, more: afterOrgId !== null };
    },
  };
}
