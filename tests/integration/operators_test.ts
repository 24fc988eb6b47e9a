/**
 * What operators see, against what a real worker says: alert rules run by promtool, dashboard queries, and the runbook.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { METRICS, type MetricSpec } from "../../src/core/metrics.ts";
import { PROCESS_METRICS } from "../../src/core/prom_metrics.ts";
import { type Alert, alertsFor, type Trigger } from "../../tools/deploy/alerts.ts";
import { read } from "../../tools/project.ts";
import { newId } from "../../src/core/ids.ts";
import { CHAINS } from "../../src/migrations.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { readSources, ROOT } from "../house/source_files.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

const RULES = "deploy/prometheus/laneway.rules.yml";
const ALERTS = alertsFor(["default"]);
const runbook = read(join(ROOT, "deploy/runbook.md")) ?? "";

/** Runs a real worker over a few items and gives its `/metrics`. */
async function scrapeWorker(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-operators-" });
  const main = [join(ROOT, "workers/maintenance/main.ts")];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...main, "--store", `sqlite:${join(folder, "a.db")}`, "--http-port", "0", "--sweep", "100ms"],
    cwd: ROOT,
    env: { LANEWAY_LOG_FORMAT: "json" },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let log = "";
  const reading = (async () => {
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) log += part;
  })();
  try {
    const port = await waitFor("the worker to listen", () => /"http\.listening".*?:(\d+)/.exec(log)?.[1], {
      timeoutMs: 30_000,
    });
    return await waitFor("the worker to sweep", async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return /laneway_sweep_steps_total\{.*\} [1-9]/.test(text) && /^laneway_work_queued /m.test(text) ? text : false;
    });
  } finally {
    child.kill("SIGTERM");
    await Promise.all([child.status, reading]);
    await Deno.remove(folder, { recursive: true });
  }
}

const scraped = await scrapeWorker();
const exported = new Set([...scraped.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? ""));

/** Names of metrics in a query. Of a histogram its own name. */
function namesIn(query: string): string[] {
  return [...query.matchAll(/\b((?:laneway|process)_\w+)/g)].map(([, name = ""]) =>
    name.replace(/_(?:bucket|sum|count)$/, "")
  );
}

interface PanelJson {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly panels?: readonly PanelJson[];
}

function queriesOf(panels: readonly PanelJson[]): string[] {
  return panels.flatMap(({ targets = [], panels = [] }) => [...targets.map(({ expr }) => expr), ...queriesOf(panels)]);
}

Deno.test("every dashboard query names metrics that a worker exports, and every metric is on the dashboard", () => {
  const { panels } = JSON.parse(read(join(ROOT, "deploy/grafana/laneway.json")) ?? "{}") as { panels: PanelJson[] };
  const named = queriesOf(panels).flatMap(namesIn);
  assert.deepEqual([...new Set(named)].filter((name) => !exported.has(name)), []);
  const shown = new Set(named);
  const all = [...Object.keys(METRICS), ...Object.keys(PROCESS_METRICS)];
  assert.deepEqual(all.filter((name) => !shown.has(name)), ["process_heap_bytes", "process_start_time_seconds"]);
});

Deno.test("every alert names metrics that a worker exports, and has a section of the runbook with commands that exist", () => {
  for (const { name, expr } of ALERTS) {
    assert.deepEqual(namesIn(expr).filter((metric) => !exported.has(metric)), [], name);
    const section = new RegExp(`^## ${name}\\n([^]*?)(?=^## |$(?![^]))`, "m").exec(runbook)?.[1] ?? "";
    for (const part of ["**Means.**", "**Look.**", "**Do.**"]) assert.ok(section.includes(part), `${name}: ${part}`);
  }
  const known = new Set(ALERTS.map(({ name }) => name));
  const headings = [...runbook.matchAll(/^## (Laneway\w+)$/gm)].map(([, name = ""]) => name);
  assert.deepEqual(headings.filter((name) => !known.has(name)), []);
});

/** The statements of the runbook. */
function statementsOf(text: string): string[] {
  return [...text.matchAll(/^```sql\n([^]*?)^```$/gm)].flatMap(([, block = ""]) =>
    block.split(/;\n/).map((statement) => statement.trim()).filter((statement) => statement !== "")
  );
}

Deno.test("the runbook's remedies mend what they are for, by the login it names: a dead letter is claimed, a stuck row is done", async () => {
  const db = await createTestDatabase(CHAINS);
  try {
    const [org, id] = [newId(), newId()];
    await db.adminSql(`insert into core.orgs (id, name, created_at) values ('${org}', 'Łódź', now())`);
    await db.adminSql(
      `insert into queue.work_items (org_id, id, created_at, created_by, available_at, kind, idempotency_key, payload,
         last_error, updated_at, updated_by, attempts, status)
       values ('${org}', '${id}', now(), '${org}', now(), 'NOTIFY_SHIPMENT', 'k', '{}', 'the receiver answered 410',
         now(), '${org}', 3, 'failed')`,
    );
    await db.adminSql(
      `insert into core.outbox (org_id, id, kind, payload, actor_id, created_at)
       values ('${org}', '${id}', 'work.a_kind_that_was_done', '{}', '${org}', now() - interval '8 days')`,
    );
    const remedies = statementsOf(runbook).filter((statement) => statement.startsWith("update "));
    assert.equal(remedies.length, 2);
    for (const remedy of remedies) {
      const changed = await db.databases.core.system(`${remedy} returning 1`, []);
      assert.equal(changed.length, 1, remedy);
    }
    const storage = new PostgresWorkStorage(db.databases.queue);
    const options = {
      lane: "default",
      kinds: ["NOTIFY_SHIPMENT"],
      worker: "w",
      leaseMs: 30_000,
      limit: 10,
      token: newId(),
    };
    const claimed = await storage.claim(options);
    assert.deepEqual(claimed.map(({ item }) => [item.id, item.attempts]), [[id, 1]]);
    const pending = await db.databases.core.system("select 1 from core.outbox where done_at is null", []);
    assert.equal(pending.length, 0);
  } finally {
    await db.drop();
  }
});

Deno.test("the runbook's statements run, by the login it names, and change nothing of a healthy queue", async () => {
  const statements = statementsOf(runbook);
  assert.ok(statements.length >= 10, `${statements.length} statements were found`);
  const db = await createTestDatabase([...CHAINS, SHIPMENTS_CHAIN]);
  try {
    for (const statement of statements) {
      const rows = await db.databases.core.system(statement, []);
      if (!/^select/.test(statement)) assert.equal(rows.length, 0, statement);
    }
  } finally {
    await db.drop();
  }
});

Deno.test("the events that the runbook names are events that are logged", async () => {
  const sources = (await readSources("src")).filter(({ path }) => !path.endsWith("_test.ts")).map(({ text }) => text)
    .join("\n");
  const named = [...runbook.matchAll(/`([a-z]+\.[a-z_]+)`/g)].map(([, name = ""]) => name)
    .filter((name) => !/^(?:run\.signal|shipments\.)/.test(name));
  assert.ok(named.length >= 8);
  assert.deepEqual([...new Set(named)].filter((name) => !isLogged(name, sources)), []);
});

/** `work.retried` and its like are put together from the outcome. */
function isLogged(name: string, sources: string): boolean {
  return sources.includes(`"${name}"`) || (/^work\./.test(name) && sources.includes(`"${name.slice("work.".length)}"`));
}

/** Where promtool is; null, with the reason printed, where it is not. */
async function promtool(): Promise<string | null> {
  const path = Deno.env.get("PROMTOOL") ?? "promtool";
  try {
    await new Deno.Command(path, { args: ["--version"], stdout: "null", stderr: "null" }).output();
    return path;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("NOT RUN: it needs promtool (Debian's package prometheus), on PATH or named by PROMTOOL");
    return null;
  }
}

async function runPromtool(args: readonly string[], input?: string): Promise<void> {
  const path = await promtool();
  if (path === null) return;
  const child = new Deno.Command(path, { args: [...args], cwd: ROOT, stdin: "piped", stdout: "piped", stderr: "piped" })
    .spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input ?? ""));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const said = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.equal(code, 0, said);
}

Deno.test("promtool takes the configuration, its rules, and what a worker exports", async () => {
  await runPromtool(["check", "config", "deploy/prometheus/prometheus.yml"]);
  await runPromtool(["check", "rules", RULES]);
  await runPromtool(["check", "metrics"], scraped);
});

/** The series a quiet fleet shows, an hour of minutes: what the worker exported, with a sweep that goes on. */
function quietSeries(): Map<string, string> {
  const series = new Map<string, string>();
  for (const [, name = "", labels = "", value = "0"] of scraped.matchAll(/^(\w+)(?:\{(.*)\})? ([\d.e+-]+)$/gm)) {
    const swept = name === "laneway_sweep_steps_total" && labels.includes('outcome="ok"');
    const gauge = (METRICS as Record<string, MetricSpec>)[name]?.type === "gauge";
    const quiet = name === "laneway_database_up" ? "1x60" : gauge ? "0x60" : `${Number(value)}x60`;
    series.set(seriesName(name, labels), swept ? "1+30x60" : quiet);
  }
  series.set(seriesName("up", ""), "1x60");
  return series;
}

function seriesName(name: string, labels: string): string {
  const scrape = `job="maintenance",instance="a:9464",worker_lane="default"`;
  return `${name}{${labels === "" ? scrape : `${labels},${scrape}`}}`;
}

/** A fleet in trouble: the quiet one with the series that trigger an alert in place of its own. */
function troubledSeries(triggers: readonly Trigger[]): Map<string, string> {
  const series = quietSeries();
  for (const { metric, labels = {}, values } of triggers) {
    const own = [...series.keys()].filter((name) =>
      name.startsWith(`${metric}{`) &&
      Object.entries(labels).every(([label, value]) => name.includes(`${label}="${value}"`))
    );
    const spec = metric === "up" ? undefined : METRICS[metric] as MetricSpec;
    const made = (spec?.labels ?? []).map((label) => `${label}="${labels[label] ?? "any"}"`).join(",");
    for (const name of own.length === 0 ? [seriesName(metric, made)] : own) series.set(name, values);
  }
  return series;
}

/** The last minute that the values of triggers tell of. */
function lastMinute(triggers: readonly Trigger[]): number {
  const minutes = triggers.map(({ values }) =>
    values.split(" ").reduce(
      (sum, part) => sum + Number(/x(\d+)$/.exec(part)?.[1] ?? 0) + (part.startsWith("_") ? 0 : 1),
      0,
    )
  );
  return Math.max(...minutes) - 1;
}

function testOf(
  name: string,
  series: ReadonlyMap<string, string>,
  minutes: number | readonly number[],
  firing: readonly string[],
) {
  return {
    name,
    interval: "1m",
    input_series: [...series].map(([series, values]) => ({ series, values })),
    promql_expr_test: [minutes].flat().map((minute) => ({
      expr: 'count by (alertname) (ALERTS{alertstate="firing"}) > bool 0',
      eval_time: `${minute}m`,
      exp_samples: firing.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    })),
  };
}

/** What fires beside an alert in its trouble, as the one causes the other. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {};

/** What a failover leaves: everything failed once, and goes on. */
const BLIP: readonly Trigger[] = [
  { metric: "laneway_claim_failures_total", values: "0x5 6x40" },
  { metric: "laneway_lease_renewals_total", labels: { outcome: "failed" }, values: "_x5 3x40" },
  { metric: "laneway_sweep_steps_total", labels: { outcome: "failed", step: "purge-items" }, values: "_x5 1x40" },
  { metric: "laneway_sweep_steps_total", labels: { outcome: "ok", step: "purge-items" }, values: "1+1x50" },
];
/** A process that was started again and then lost a lease, as the one before it had. */
const ANEW: readonly Trigger[] = [{ metric: "laneway_leases_lost_total", values: "5x30 1x5" }];

Deno.test("in a quiet fleet no alert fires, and each fires in its own trouble, alone", async () => {
  const tests = [
    testOf("a quiet fleet", quietSeries(), 45, []),
    testOf("a failover that is over", troubledSeries(BLIP), Array.from({ length: 30 }, (_, i) => i + 1), []),
    testOf("a counter that began anew", troubledSeries(ANEW), 31, ["LanewayLeasesLost"]),
    ...ALERTS.map(({ name, trigger }: Alert) =>
      testOf(name, troubledSeries(trigger), lastMinute(trigger), [name, ...BESIDE[name] ?? []])
    ),
  ];
  const file = await Deno.makeTempFile({ suffix: ".yml" });
  try {
    await Deno.writeTextFile(
      file,
      JSON.stringify({ rule_files: [join(ROOT, RULES)], evaluation_interval: "1m", tests }),
    );
    await runPromtool(["test", "rules", file]);
  } finally {
    await Deno.remove(file);
  }
});
