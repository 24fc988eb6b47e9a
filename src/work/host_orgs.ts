/**
 * Keeps hosts' lists free of orgs that have ended. The lists are the queue's, the orgs are tenancy's, and no statement spans
 * the two. An org that is ended through the manager is taken off at once; until the sweep has been here a host may still claim
 * what an org left behind that was ended otherwise, or by a process that crashed before it took it off.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import type { TenancyManager } from "../tenancy/types.ts";
import type { WorkStorage } from "./storage.ts";

const PAGE = 1_000;

/** Takes every org that has ended, or never was, off the lists. Returns how many times a list was changed. */
export async function pruneHostOrgs(
  rctx: RequestContext,
  { storage, tenancy }: { readonly storage: WorkStorage; readonly tenancy: TenancyManager },
): Promise<number> {
  let changed = 0;
  let page: string[];
  let after: string | null = null;
  do {
    page = await storage.hostOrgs(after, PAGE);
    after = page.at(-1) ?? null;
    const live = new Set((await tenancy.serviceContextsOf(rctx, page)).map((ctx) => ctx.orgId));
    const ended = page.filter((id) => !live.has(id));
    if (ended.length > 0) changed += await storage.dropHostOrgs(ended);
  } while (page.length === PAGE);
  return changed;
}
