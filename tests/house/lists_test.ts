/**
 * Two lists that only grow on purpose: statements without a tenant, and operations without one.
 */
import assert from "node:assert/strict";
import { production, readSources } from "./source_files.ts";

/** Storage methods whose statements run on the system login, without a tenant. Each says why in its interface. */
const TENANTLESS: Readonly<Record<string, readonly string[]>> = {
  audit: ["createEntries"],
  idempotency: ["purgeMarkers"],
  outbox: ["readPending", "markDone", "purgeDone", "readLag"],
  tenancy: [
    "createOrg",
    "endOrg",
    "createUser",
    "readUser",
    "readSubjects",
    "liveOrgIds",
    "purgeSessions",
    "purgeSocketTickets",
  ],
  work: [
    "claim",
    "settle",
    "extendLeases",
    "readClaims",
    "failOrphaned",
    "promote",
    "orgsWithStale",
    "failStaleOf",
    "readUnaudited",
    "clearAudit",
    "purgeItems",
    "purgeKeys",
    "readGauges",
    "takeSweepSteps",
    "archiveDone",
    "purgeAttempts",
    "hostOrgs",
    "dropHostOrgs",
    "readHosts",
  ],
};

/** The same of workers that keep records of their own, by the folder of their record. */
const WORKERS_TENANTLESS: Readonly<Record<string, readonly string[]>> = {
  "workers/shipment-notifier/shipments": ["orgsWithParked", "countParked", "orgsWithDeleted"],
  "workers/shipment-notifier/endpoints": [],
};

/** Every list, by folder. */
const LISTS = [
  ...Object.entries(TENANTLESS).map(([room, methods]) => [`src/${room}`, methods] as const),
  ...Object.entries(WORKERS_TENANTLESS),
];

/** Private parts of the above, that run their statements. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  "src/work": [
    "claimDue",
    "claimPriority",
    "readClaimed",
    "settleEncoded",
    "complete",
    "completeAndDrop",
    "completePlaced",
  ],
};

/** Manager operations that take a `RequestContext`: they act before, beside or across tenants. */
const REQUEST_STAGE: Readonly<Record<string, readonly string[]>> = {
  audit: ["appendEntries"],
  idempotency: ["purgeMarkers"],
  outbox: ["relayPending", "purgeDone", "readLag"],
  tenancy: [
    "createOrg",
    "createUser",
    "addMember",
    "endMembership",
    "endOrg",
    "memberContext",
    "serviceContext",
    "serviceContexts",
    "serviceContextsOf",
    "claimContexts",
    "authenticate",
    "redeemSocketTicket",
    "purgeSessions",
    "purgeSocketTickets",
  ],
  work: [
    "claim",
    "promote",
    "staleOrgs",
    "failStaleOfEnded",
    "auditDeadLetters",
    "purgeItems",
    "purgeKeys",
    "readGauges",
    "maintenanceContexts",
    "takeSweepSteps",
    "archiveDone",
    "purgeAttempts",
    "pruneHostOrgs",
    "readHosts",
  ],
};

/** Of each `.system(` call, the method it stands in: the nearest method head above it. */
function callers(text: string): string[] {
  const found: string[] = [];
  let method = "?";
  for (const line of text.split("\n")) {
    const head = /^ {2}(?:async )?\*?#?(\w+)(?:<[^>]*>)?\(/.exec(line) ??
      /^(?:export )?(?:async )?function (\w+)/.exec(line);
    if (head?.[1] !== undefined && head[1] !== "constructor") method = head[1];
    if (/\.system\b(?:<[^(]*>)?\(/.test(line)) found.push(method);
  }
  return found;
}

Deno.test("every statement without a tenant stands in a method of the list", async () => {
  for (const [folder, allowed] of LISTS) {
    const files = production(await readSources(folder));
    const found = new Set(files.flatMap(({ text }) => callers(text)));
    assert.deepEqual(
      [...found].filter((method) => ![...allowed, ...PARTS[folder] ?? []].includes(method)),
      [],
      folder,
    );
  }
});

Deno.test("no other room runs statements without a tenant, but the cache, the topics and the migrators", async () => {
  const rooms = new Set([...Object.keys(TENANTLESS), "infra", "db"]);
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  const wrong = files.filter(({ path, text }) =>
    !rooms.has(path.split("/")[1] ?? "") && !LISTS.some(([folder]) => path.startsWith(`${folder}/`)) &&
    callers(text).length > 0
  );
  // The hint a worker sends belongs to no org.
  assert.deepEqual(wrong.map(({ path }) => path).filter((path) => path !== "src/runtime/open_store.ts"), []);
});

Deno.test("every method of the list says that it is tenant-less, and why", async () => {
  for (const [folder, methods] of LISTS) {
    const declared = (await readSources(folder)).map(({ text }) => text).join("\n");
    for (const method of methods) {
      const docs = [...declared.matchAll(new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\s*${method}\\(`, "g"))];
      assert.ok(docs.some(([, doc]) => doc?.includes("Tenant-less")), `${folder} ${method}`);
    }
  }
});

Deno.test("every operation that takes a request stage is on the list, and the list names no other", async () => {
  for (const [room, methods] of Object.entries(REQUEST_STAGE)) {
    const text = production(await readSources(`src/${room}`)).filter(({ path }) => /\/(types|manager)\.ts$/.test(path))
      .map((file) => file.text).join("\n");
    const taken = [...text.matchAll(/^ {2}(\w+)(?:<[^>]*>)?\(\s*rctx: RequestContext/gm)].map((match) =>
      match[1] ?? ""
    );
    assert.deepEqual([...new Set(taken)].sort(), [...methods].sort(), `src/${room}`);
  }
});
