/**
 * The commands that sequences are drawn of: what producers and workers do. What the sweep does is in `sweep_commands.ts`.
 *
 * @module
 */
import fc from "fast-check";
import type { ClaimRef, ClaimRequest, Settlement, WriteOutcome } from "../../src/work/storage.ts";
import { ALL_LANES, AUDIT, drawnItem, drawnRef, insertOf, KINDS, ORGS, refOf, uuid } from "./domain.ts";
import { ask, Step } from "./step.ts";
import { SWEEP_COMMANDS } from "./sweep_commands.ts";
import { MINTED, type WorkModel } from "./work_model.ts";

/** Commands, each as often as it stands here. */
type Weighted = readonly (readonly [weight: number, command: fc.Arbitrary<Step>])[];

const org = fc.nat({ max: ORGS.length - 1 });

const create = fc.record({ org, items: fc.array(drawnItem, { minLength: 1, maxLength: 5 }) }).map((args) =>
  new Step("create", args, async (model, world) => {
    const orgId = ORGS[args.org] ?? "";
    const inserts = args.items.map((item) => insertOf(item, args.org, model.nowMs));
    for (const { item } of inserts) {
      world.ids.add(`${orgId} ${item.id}`);
      world.keys.add(`${orgId} ${item.idempotencyKey}`);
    }
    const expected = model.create(orgId, inserts);
    await ask(world, ({ storage }) => storage.createItems(orgId, inserts), expected);
  })
);

const kinds = fc.oneof(
  { weight: 3, arbitrary: fc.constant([...KINDS, "KIND_ABSENT"]) },
  { weight: 2, arbitrary: fc.subarray([...KINDS], { minLength: 1 }) },
);

const claim = fc.record({
  lane: fc.oneof({ weight: 5, arbitrary: fc.constant("default") }, {
    weight: 2,
    arbitrary: fc.constantFrom(...ALL_LANES),
  }),
  kinds,
  limit: fc.constantFrom(1, 2, 3, 5, 100),
  leaseMs: fc.constantFrom(30_000, 5_000, 1_000),
  order: fc.constantFrom("due" as const, "fair" as const),
}).map((args) =>
  new Step("claim", args, async (model, world) => {
    const token = uuid("70000000", ++world.tokens);
    const request: ClaimRequest = { ...args, worker: `worker-${world.tokens}`, token };
    await ask(world, (store) => store.claim(request, world.elsewhere), model.claim(request));
  })
);

const settlement = fc.record({
  ref: drawnRef,
  to: fc.constantFrom("done" as const, "drop" as const, "failed" as const, "retry" as const, "back" as const),
  delayMs: fc.constantFrom(0, 1, 5_000, 60_000),
  ran: fc.boolean(),
  note: fc.constantFrom(null, "handed back", 'ünï "x" \\ 🚚'),
});

const settle = fc.array(settlement, { minLength: 1, maxLength: 5 }).map((args) =>
  new Step("settle", args, async (model, world) => {
    const settlements = oneWayEach(args.map((drawn, n) => settlementOf(drawn, refOf(drawn.ref, model), `${n}`)));
    if (settlements.some((one) => one.to === "back" && !one.ran && one.delayMs === 0)) world.elsewhere = true;
    const expected = told(settlements, model.settle(settlements));
    await ask(
      world,
      ({ storage }) => storage.settle(settlements),
      expected,
      (seen) => told(settlements, seen as WriteOutcome[]),
    );
  })
);

function settlementOf(
  { to, delayMs, ran, note }: { to: string; delayMs: number; ran: boolean; note: string | null },
  ref: ClaimRef,
  error: string,
): Settlement {
  switch (to) {
    case "done":
      return { ...ref, to };
    case "drop":
      return { ...ref, to: "done", keep: false };
    case "failed":
      return { ...ref, to, error, auditId: `${AUDIT}${ref.token.slice(8)}` };
    case "retry":
      return { ...ref, to, delayMs, error };
    default:
      return { ...ref, to: "back", delayMs, note, ran };
  }
}

/** A holder settles one way; should a batch name a claim in two, which is first is not said. Twice the same is a repeat. */
function oneWayEach(settlements: readonly Settlement[]): Settlement[] {
  const first = new Map<string, Settlement>();
  return settlements.map((settlement) => {
    const name = nameOf(settlement);
    const same = first.get(name) ?? settlement;
    first.set(name, same);
    return same;
  });
}

/** Outcomes with their claims, in an order of their own: of two writes of one claim in one batch, either may be the first. */
function told(refs: readonly ClaimRef[], outcomes: readonly WriteOutcome[]): string[] {
  return refs.map((ref, n) => `${nameOf(ref)} ${outcomes[n]}`).concat(`${outcomes.length} outcomes`).sort();
}

function nameOf({ orgId, id, token }: ClaimRef): string {
  return `${orgId} ${id} ${token}`;
}

const refs = fc.array(drawnRef, { minLength: 1, maxLength: 4 });

const extend = fc.record({ refs, leaseMs: fc.constantFrom(30_000, 1_000) }).map((args) =>
  new Step("extendLeases", args, async (model, world) => {
    const named = args.refs.map((drawn) => refOf(drawn, model));
    await ask(
      world,
      ({ storage }) => storage.extendLeases(named, args.leaseMs),
      model.extendLeases(named, args.leaseMs),
    );
  })
);

const failOrphaned = refs.map((args) =>
  new Step("failOrphaned", args, async (model, world) => {
    const named = args.map((drawn) => refOf(drawn, model));
    const expected = told(named, model.failOrphaned(named, "org gone"));
    const call = (seen: unknown) => told(named, seen as WriteOutcome[]);
    await ask(world, ({ storage }) => storage.failOrphaned(named, "org gone"), expected, call);
  })
);

const readClaims = refs.map((args) =>
  new Step("readClaims", args, async (model, world) => {
    const named = args.map((drawn) => refOf(drawn, model));
    const sorted = (states: unknown) => (states as unknown[]).map((state) => JSON.stringify(ordered(state))).sort();
    const expected = sorted(model.readClaims(named));
    await ask(world, ({ storage }) => storage.readClaims(named), expected, sorted);
  })
);

function ordered(value: unknown): unknown {
  return Object.entries(value as object).sort(([a], [b]) => a < b ? -1 : 1);
}

const readClaimed = drawnRef.map((args) =>
  new Step("readClaimed", args, async (model, world) => {
    const { token } = refOf(args, model);
    await ask(world, ({ storage }) => storage.readClaimed(token), model.readClaimed(token));
  })
);

const advance = fc.constantFrom(1, 500, 999, 1_000, 5_000, 30_000, 100_000, -700, -40_000).map((ms) =>
  new Step("advance", ms, async (model, world) => {
    model.nowMs += ms;
    // A clock that is set back: what comes now has a place before what was claimed.
    if (ms < 0) world.elsewhere = true;
    await Promise.all(world.stores.map((store) => store.setTime(model.nowMs)));
    // Nothing is promoted late, which a process that knows its earlier claims may pass over.
    if (!world.elsewhere) await ask(world, ({ storage }) => storage.promote(1_000), model.promote(1_000));
  })
);

const readAll = fc.constant(new Step("readAll", {}, compareAll));

/** Every item and key that a sequence ever named is in every storage as the model has it. */
export async function compareAll(model: WorkModel, world: Parameters<Step["run"]>[1]): Promise<void> {
  const split = (name: string) => [name.slice(0, 36), name.slice(37)] as const;
  const [ids, keys] = [[...world.ids].map(split), [...world.keys].map(split)];
  const items = ids.map(([orgId, id]) => model.readItem(orgId, id));
  const holders = keys.map(([orgId, key]) => model.readItemByKey(orgId, key));
  await ask(
    world,
    async ({ storage }) => {
      const seen = await Promise.all(ids.map(([orgId, id]) => storage.readItem(orgId, id)));
      return [seen, await Promise.all(keys.map(([orgId, key]) => storage.readItemByKey(orgId, key)))];
    },
    [items, holders],
    withoutMinted,
  );
}

/** With audit ids that a storage minted under one name. */
export function withoutMinted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMinted);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map((
      [key, entry],
    ) => [key, key === "auditId" && isMinted(entry) ? MINTED : withoutMinted(entry)]),
  );
}

function isMinted(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value) &&
    !value.startsWith(AUDIT);
}

const COMMANDS: Weighted = [
  [6, create],
  [7, claim],
  [6, settle],
  [2, extend],
  [1, failOrphaned],
  [1, readClaims],
  [1, readClaimed],
  [5, advance],
  [1, readAll],
  ...SWEEP_COMMANDS,
];

/** Sequences of commands, up to so many. */
export function sequences(maxCommands: number, replayPath?: string): fc.Arbitrary<Iterable<Step>> {
  const all = COMMANDS.flatMap(([weight, command]) => Array.from({ length: weight }, () => command));
  return fc.commands(all, { maxCommands, size: "max", ...(replayPath === undefined ? {} : { replayPath }) }) as never;
}
