/**
 * `check`: whether a host's key may do what a host does, and nothing else. Every request is one that would change nothing
 * if it were allowed: its filter meets no row, or its row is one that no table takes.
 *
 * @module
 */
import { EMPTY_UUID } from "../core/ids.ts";
import type { Check } from "../runtime/definition.ts";
import type { KeyClaims } from "./key_claims.ts";
import type { ProbeAnswer, ProbeRequest, RestProbe } from "./rest_probe.ts";

/** The role a host's key acts as. */
export const HOST_ROLE = "laneway_host";

const DAY_MS = 86_400_000;
const EXPIRES_SOON_MS = 7 * DAY_MS;
const AT_ONCE = 4;

const NO_ITEM = `/work_items?id=eq.${EMPTY_UUID}&org_id=eq.${EMPTY_UUID}`;
const NO_HOST = "/hosts?name=eq.-";
const NO_STEP = "/sweep_steps?step=eq.-";
const NO_ATTEMPT = `/attempts?item_id=eq.${EMPTY_UUID}&org_id=eq.${EMPTY_UUID}`;

interface Right {
  /** What is tried, as a finding names it. */
  readonly what: string;
  readonly request: ProbeRequest;
}

/** What a claim and what follows it write. */
const CLAIM_COLUMNS = [
  ...["status", "ready", "claimed_by", "claim_token", "lease_expires_at", "attempts", "claims", "expiries"],
  ...["available_at", "last_error", "note", "audit_id", "updated_at", "updated_by", "host"],
];
const BEAT_COLUMNS = ["last_heartbeat_at", "current_workers", "updated_at"];
const ATTEMPT_COLUMNS = [
  ...["org_id", "item_id", "claim_token", "attempt", "worker", "started_at", "finished_at", "duration_ms", "outcome"],
  ...["reason", "exit_code", "signal", "stdout_tail", "stderr_tail", "stdout_cut_bytes", "stderr_cut_bytes"],
];

/** What a host does, with every column it writes: a right to some of them is not enough. */
const NEEDED: readonly Right[] = [
  { what: "read items", request: { method: "GET", path: "/work_items?limit=0" } },
  { what: "read its row", request: { method: "GET", path: "/hosts?limit=0" } },
  { what: "read attempts", request: { method: "GET", path: "/attempts?limit=0" } },
  { what: "read when somebody swept", request: { method: "GET", path: "/sweep_steps?limit=0" } },
  { what: "write claims", request: { method: "PATCH", path: NO_ITEM, body: nulls(CLAIM_COLUMNS) } },
  { what: "write its heartbeat", request: { method: "PATCH", path: NO_HOST, body: nulls(BEAT_COLUMNS) } },
  {
    what: "store attempts",
    request: { method: "POST", path: "/attempts", body: { ...nulls(ATTEMPT_COLUMNS), host: "-" } },
  },
];

/** Columns that only enqueuers set. */
const ITEM_COLUMNS = [
  ...["org_id", "id", "kind", "lane", "payload", "priority", "weight", "host_preference"],
  ...["idempotency_key", "max_attempts", "target_id", "created_at", "created_by", "request_id", "traceparent"],
];
/** Columns that only the operators of the fleet set. */
const HOST_COLUMNS = [
  ...["name", "enabled", "org_ids", "kinds", "weights", "priority_floor", "lane", "windows", "note", "created_at"],
];

/** What a host must be refused. */
const FORBIDDEN: readonly Right[] = [
  ...ITEM_COLUMNS.map((column): Right => ({
    what: `change ${column} of items`,
    request: { method: "PATCH", path: NO_ITEM, body: { [column]: null } },
  })),
  ...HOST_COLUMNS.map((column): Right => ({
    what: `change ${column} of hosts`,
    request: { method: "PATCH", path: NO_HOST, body: { [column]: null } },
  })),
  { what: "enqueue items", request: { method: "POST", path: "/work_items", body: {} } },
  { what: "delete items", request: { method: "DELETE", path: NO_ITEM } },
  { what: "make hosts", request: { method: "POST", path: "/hosts", body: { name: null } } },
  { what: "delete hosts", request: { method: "DELETE", path: NO_HOST } },
  { what: "change attempts", request: { method: "PATCH", path: NO_ATTEMPT, body: { outcome: "done" } } },
  { what: "delete attempts", request: { method: "DELETE", path: NO_ATTEMPT } },
  { what: "change when somebody swept", request: { method: "PATCH", path: NO_STEP, body: { last_run_at: null } } },
  { what: "say that somebody swept", request: { method: "POST", path: "/sweep_steps", body: { step: null } } },
  { what: "delete when somebody swept", request: { method: "DELETE", path: NO_STEP } },
  { what: "read finished items", request: { method: "GET", path: "/work_history?limit=0" } },
  { what: "read idempotency keys", request: { method: "GET", path: "/work_keys?limit=0" } },
  { what: "read orgs", request: { method: "GET", path: "/orgs?limit=0", schema: "core" } },
  { what: "read audit entries", request: { method: "GET", path: "/audit_entries?limit=0", schema: "activity" } },
];

/** What row security hides. One row that shows is enough. */
const OTHERS: readonly { readonly what: string; readonly table: string; readonly path: (me: string) => string }[] = [
  { what: "other hosts' rows", table: "hosts", path: (me) => `/hosts?select=name&name=neq.${me}&limit=1` },
  { what: "other hosts' attempts", table: "attempts", path: (me) => `/attempts?select=host&host=neq.${me}&limit=1` },
  {
    what: "items that others hold",
    table: "work_items",
    path: (me) => `/work_items?select=id&status=eq.claimed&or=(host.is.null,host.neq.${me})&limit=1`,
  },
];

/** Whether the server answers and takes the key. The rest need not be looked at when it does not. */
export async function checkServer(probe: RestProbe): Promise<Check> {
  const { status, code, message, server } = await probe({ method: "GET", path: "/hosts?limit=0" });
  const name = "server";
  const named = server === null ? "the server" : server;
  if (status === 200) return { name, state: "ok", said: `${named} answers and takes the key` };
  if (status === 401) {
    return fail(name, `${named} refuses the key (401 ${code ?? ""}): ${message || "issue a new one"}`);
  }
  if (status === 406 || code === "PGRST106") {
    return fail(name, `${named} does not serve the schema queue: add it to the schemas it exposes`);
  }
  if (status === 404) return fail(name, `${named} knows no queue.hosts: run migrate up, then reload its schema cache`);
  if (status >= 300 && status < 400) return fail(name, `${named} redirects (${status}): set the URL it redirects to`);
  return fail(name, `${named} answered ${status} ${code ?? ""} ${message}`.trim());
}

/** What the key says of itself: role, host, expiry. */
export function checkKey(claims: KeyClaims | null, { host, nowMs }: { host: string; nowMs: number }): Check {
  const name = "key";
  if (claims === null) return { name, state: "warn", said: "it is no JWT: what it says of itself cannot be read" };
  if (claims.role !== HOST_ROLE) {
    return fail(name, `it acts as ${claims.role ?? "no role"}: issue one with the claim role ${HOST_ROLE}`);
  }
  if (claims.host !== host) return fail(name, `it is for host ${claims.host ?? "(none)"}, this one is ${host}`);
  if (claims.expiresAtMs === null) {
    return { name, state: "ok", said: `acts as ${HOST_ROLE} for ${host}, never expires` };
  }
  const leftMs = claims.expiresAtMs - nowMs;
  const when = new Date(claims.expiresAtMs).toISOString();
  if (leftMs <= 0) return fail(name, `it expired at ${when}: put a new one into its file`);
  const said = `acts as ${HOST_ROLE} for ${host}, expires at ${when}`;
  return leftMs < EXPIRES_SOON_MS
    ? { name, state: "warn", said: `${said}: put a new one into its file in time` }
    : { name, state: "ok", said };
}

/** Whether the key's rights are exactly what they should be: one line when they are, one for each that is not. */
export async function checkRights(probe: RestProbe, host: string): Promise<Check[]> {
  const name = "rights";
  const needed = await inTurn(NEEDED, async (right) => ({ right, answer: await probe(right.request) }));
  const forbidden = await inTurn(FORBIDDEN, async (right) => ({ right, answer: await probe(right.request) }));
  const missing = needed.filter(({ answer }) => !isGranted(answer)).map(({ right, answer }) =>
    fail(
      name,
      `it may not ${right.what} (${answer.status} ${answer.code ?? ""}): grant it as the migration queue/2 does`,
    )
  );
  const excess = forbidden.filter(({ answer }) => isGranted(answer)).map(({ right }) =>
    fail(name, `it may ${right.what}, which no host must: revoke it, or issue a key for the role ${HOST_ROLE}`)
  );
  const me = encodeURIComponent(host);
  const others = await inTurn(
    OTHERS,
    async (of) => ({ of, answer: await probe({ method: "GET", path: of.path(me) }) }),
  );
  for (const { of, answer } of others) {
    // Not let in at all is told above.
    if (!isGranted(answer) || (Array.isArray(answer.body) && answer.body.length === 0)) continue;
    excess.push(fail(name, `it may read ${of.what}: row security of queue.${of.table} is off or passed by`));
  }
  if (missing.length + excess.length > 0) return [...missing, ...excess];
  const said = "it may read and write its claims, its heartbeat and its attempts, and nothing else";
  return [{ name, state: "ok", said }];
}

/**
 * Whether a right is there. A row that is refused by a policy or a constraint was let in by the grants; a table that the
 * server does not know or a schema it does not serve was not.
 */
function isGranted({ status, code, message }: ProbeAnswer): boolean {
  if (code === "42501") return /row-level security/.test(message);
  if (status === 401 || status === 403) return false;
  return !["PGRST106", "PGRST205", "42P01", "PGRST204", "42703"].includes(code ?? "") && status !== 406 &&
    !(status === 404 && code !== null);
}

function nulls(columns: readonly string[]): Record<string, null> {
  return Object.fromEntries(columns.map((column) => [column, null]));
}

async function inTurn<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    done.push(...await Promise.all(items.slice(at, at + AT_ONCE).map(run)));
  }
  return done;
}

function fail(name: string, said: string): Check {
  return { name, state: "fail", said };
}
