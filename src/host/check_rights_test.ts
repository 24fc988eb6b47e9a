import assert from "node:assert/strict";
import { checkKey, checkRights, checkServer } from "./check_rights.ts";
import type { ProbeAnswer, ProbeRequest, RestProbe } from "./rest_probe.ts";

const ANSWER: ProbeAnswer = { status: 200, code: null, message: "", body: [], server: "postgrest/12.0.2" };
const DENIED: ProbeAnswer = { ...ANSWER, status: 403, code: "42501", message: "permission denied for table", body: {} };
const BY_POLICY: ProbeAnswer = {
  ...DENIED,
  message: 'new row violates row-level security policy for table "attempts"',
};
const NO_SCHEMA: ProbeAnswer = { ...ANSWER, status: 406, code: "PGRST106", body: {} };

/** A server whose key may do just what a host does. */
function plain({ method, path, body, schema = "queue" }: ProbeRequest): ProbeAnswer {
  if (schema !== "queue") return NO_SCHEMA;
  const [column = ""] = Object.keys(body as object | undefined ?? {});
  if (method === "GET") return /^\/(work_items|hosts|attempts|sweep_steps)\b/.test(path) ? ANSWER : DENIED;
  if (method === "PATCH" && path.startsWith("/work_items")) return column === "status" ? ANSWER : DENIED;
  if (method === "PATCH" && path.startsWith("/hosts")) return column === "last_heartbeat_at" ? ANSWER : DENIED;
  return method === "POST" && path === "/attempts" ? BY_POLICY : DENIED;
}

function failuresOf(probe: (request: ProbeRequest) => ProbeAnswer): Promise<string[]> {
  const run: RestProbe = (request) => Promise.resolve(probe(request));
  return checkRights(run, "wsl1").then((checks) =>
    checks.filter(({ state }) => state === "fail").map(({ said }) => said)
  );
}

Deno.test("a key with exactly a host's rights passes in one line", async () => {
  const checks = await checkRights((request) => Promise.resolve(plain(request)), "wsl1");
  assert.deepEqual(checks.map(({ state }) => state), ["ok"]);
});

const EXCESS: readonly (readonly [what: string, does: (request: ProbeRequest) => boolean])[] = [
  ["change enabled of hosts", ({ path, body }) => path.startsWith("/hosts") && "enabled" in (body as object ?? {})],
  [
    "change priority of items",
    ({ path, body }) => path.startsWith("/work_items") && "priority" in (body as object ?? {}),
  ],
  ["delete items", ({ method, path }) => method === "DELETE" && path.startsWith("/work_items")],
  ["read finished items", ({ path }) => path.startsWith("/work_history")],
  ["read orgs", ({ schema }) => schema === "core"],
];

for (const [what, does] of EXCESS) {
  Deno.test(`a right too many is a failure that names it: ${what}`, async () => {
    const said = await failuresOf((request) => does(request) ? ANSWER : plain(request));
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", new RegExp(`may ${what}, which no host must`));
  });
}

Deno.test("a row that a constraint or a policy refuses was let in by the grants", async () => {
  const notNull: ProbeAnswer = { ...ANSWER, status: 400, code: "23502", message: "null value", body: {} };
  for (const answer of [notNull, BY_POLICY]) {
    const said = await failuresOf((request) =>
      request.method === "POST" && request.path === "/work_items" ? answer : plain(request)
    );
    assert.match(said[0] ?? "", /may enqueue items/);
  }
});

Deno.test("the key of everything fails on every line", async () => {
  const said = await failuresOf(() => ANSWER);
  assert.ok(said.length > 25, `${said.length} lines`);
});

Deno.test("a right too few is a failure that says how to grant it", async () => {
  const said = await failuresOf((request) => request.path === "/attempts" ? DENIED : plain(request));
  assert.match(said.join("\n"), /^it may not store attempts \(403 42501\): grant it/);
});

Deno.test("a right to some of the columns that a host writes is a right too few", async () => {
  const body = (request: ProbeRequest) => Object.keys(request.body as object | undefined ?? {});
  const lacks = (column: string) => failuresOf((request) => body(request).includes(column) ? DENIED : plain(request));
  assert.match((await lacks("audit_id")).join(), /^it may not write claims/);
  assert.match((await lacks("updated_at")).join(), /^it may not write claims .*it may not write its heartbeat/);
  assert.match((await lacks("stdout_tail")).join(), /^it may not store attempts/);
});

for (
  const [table, filter, says] of [
    ["hosts", "name=neq.", "other hosts' rows"],
    ["attempts", "host=neq.", "other hosts' attempts"],
    ["work_items", "host.neq.", "items that others hold"],
  ] as const
) {
  Deno.test(`a key that sees what row security hides fails: ${says}`, async () => {
    const said = await failuresOf((request) =>
      request.path.startsWith(`/${table}?`) && request.path.includes(filter)
        ? { ...ANSWER, body: [{ name: "other" }] }
        : plain(request)
    );
    assert.equal(said.length, 1);
    assert.match(said[0] ?? "", new RegExp(`may read ${says}: row security of queue.${table} is off`));
  });
}

Deno.test("nothing that is tried could change a row", async () => {
  const tried: ProbeRequest[] = [];
  await checkRights((request) => {
    tried.push(request);
    return Promise.resolve(ANSWER);
  }, "wsl1");
  for (const { method, path, body } of tried) {
    if (method === "GET") continue;
    const nothing = method === "POST"
      ? Object.values(body as object).every((value) => value === null || value === "-")
      : /=eq\.(00000000-|-$)/.test(path);
    assert.ok(nothing, `${method} ${path}`);
  }
});

const SERVERS: readonly (readonly [what: string, answer: ProbeAnswer, says: RegExp])[] = [
  ["an expired key", { ...ANSWER, status: 401, code: "PGRST301", message: "JWT expired" }, /401 PGRST301.*JWT expired/],
  ["a schema it does not serve", NO_SCHEMA, /schema queue.*exposes/],
  ["no table", { ...ANSWER, status: 404, code: "42P01" }, /migrate up/],
  ["a redirect", { ...ANSWER, status: 308 }, /redirects/],
  ["a gateway's error", { ...ANSWER, status: 502, server: null }, /the server answered 502/],
];

for (const [what, answer, says] of SERVERS) {
  Deno.test(`a server that does not serve is said with what mends it: ${what}`, async () => {
    const { state, said } = await checkServer(() => Promise.resolve(answer));
    assert.equal(state, "fail");
    assert.match(said, says);
  });
}

Deno.test("the key's own claims: role, host and expiry", () => {
  const nowMs = Date.parse("2026-06-02T12:00:00Z");
  const claims = { role: "laneway_host", host: "wsl1", expiresAtMs: nowMs + 30 * 86_400_000 };
  const stateOf = (changed: Partial<typeof claims>) => {
    const { state, said } = checkKey({ ...claims, ...changed }, { host: "wsl1", nowMs });
    return `${state} ${said}`;
  };
  assert.match(stateOf({}), /^ok acts as laneway_host for wsl1, expires at 2026-07-02/);
  assert.match(stateOf({ role: "service_role" }), /^fail it acts as service_role/);
  assert.match(stateOf({ host: "lap1" }), /^fail it is for host lap1, this one is wsl1/);
  assert.match(stateOf({ expiresAtMs: nowMs - 1 }), /^fail it expired/);
  assert.match(stateOf({ expiresAtMs: nowMs + 86_400_000 }), /^warn .*in time/);
  assert.equal(checkKey(null, { host: "wsl1", nowMs }).state, "warn");
});
