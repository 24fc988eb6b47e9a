/**
 * The dashboard: every metric of the catalogue, and a row for each worker.
 *
 * @module
 */
import { type MetricName, METRICS, type MetricSpec } from "../../src/core/metrics.ts";
import type { DeployWorker } from "./deploy_worker.ts";

/** One query of a panel. */
interface Query {
  readonly expr: string;
  readonly legend: string;
}

/** One panel, before it is placed. */
interface Panel {
  readonly title: string;
  readonly help: string;
  readonly unit: string;
  readonly queries: readonly Query[];
  readonly type: "timeseries" | "stat";
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly collapsed: boolean;
}

/** Rows by what an operator asks, in the order they ask it; a metric that no row names goes to the last one. */
const SECTIONS: readonly (readonly [title: string, metrics: readonly MetricName[]])[] = [
  ["Does work wait?", [
    "laneway_queue_oldest_age_seconds",
    "laneway_work_queued",
    "laneway_work_failed",
    "laneway_records_parked",
    "laneway_outbox_lag_seconds",
    "laneway_database_up",
  ]],
  ["Is work done?", [
    "laneway_items_enqueued_total",
    "laneway_items_claimed_total",
    "laneway_items_settled_total",
    "laneway_start_latency_seconds",
    "laneway_run_duration_seconds",
    "laneway_items_running",
    "laneway_capacity",
    "laneway_deaf_handlers",
  ]],
  ["Do claims hold?", [
    "laneway_lease_renewals_total",
    "laneway_leases_lost_total",
    "laneway_claim_failures_total",
    "laneway_items_requeued_total",
    "laneway_items_orphaned_total",
  ]],
  ["Is the house kept?", [
    "laneway_sweep_steps_total",
    "laneway_sweep_rows_total",
    "laneway_outbox_relayed_total",
    "laneway_outbox_unknown_kind",
    "laneway_outbox_too_old",
  ]],
  ["Hosts", ["laneway_host_heartbeat_age_seconds", "laneway_host_in_flight"]],
];
const THE_REST = "Processes";

// What several processes say of the same thing, each by itself: their sum would count it as often as there are processes.
const SAID_BY_ALL = /^laneway_(?:queue|work|records|outbox|host|build)_/;
const WIDTH = 24;
const PANEL = { w: 8, h: 7 };

/** The dashboard's JSON. */
export function dashboard(workers: readonly DeployWorker[]): string {
  const named = new Set(SECTIONS.flatMap(([, metrics]) => metrics));
  const rest = (Object.keys(METRICS) as MetricName[]).filter((name) => !named.has(name));
  const rows: Row[] = [
    ...SECTIONS.map(([title, metrics]) => ({ title, panels: metrics.map(metricPanel), collapsed: false })),
    { title: THE_REST, panels: [...rest.map(metricPanel), ...PROCESS_PANELS], collapsed: false },
    ...workers.map((worker) => ({
      title: `Worker ${worker.name} (lane ${worker.lane})`,
      panels: workerPanels(worker),
      collapsed: true,
    })),
  ];
  return `${JSON.stringify({ ...HEAD, panels: placed(rows) }, null, 2)}\n`;
}

const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

const HEAD = {
  uid: "laneway",
  title: "Laneway",
  description: "Generated: deno task docs. Change tools/deploy/grafana.ts instead.",
  tags: ["laneway"],
  timezone: "browser",
  editable: true,
  graphTooltip: 1,
  refresh: "30s",
  schemaVersion: 39,
  time: { from: "now-3h", to: "now" },
  templating: {
    list: [
      { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {}, hide: 0 },
      {
        name: "job",
        label: "Worker",
        type: "query",
        datasource: DATASOURCE,
        query: { query: "label_values(laneway_build_info, job)", refId: "job" },
        definition: "label_values(laneway_build_info, job)",
        refresh: 2,
        multi: true,
        includeAll: true,
        allValue: ".*",
        current: { text: "All", value: "$__all" },
        sort: 1,
        hide: 0,
      },
    ],
  },
  annotations: { list: [] },
};

function metricPanel(name: MetricName): Panel {
  const spec: MetricSpec = METRICS[name];
  const title = titleOf(name);
  const selected = `${name}{job=~"$job"}`;
  if (spec.type === "histogram") {
    const quantile = (q: number) =>
      `histogram_quantile(${q}, sum by (le, kind) (rate(${name}_bucket{job=~"$job"}[$__rate_interval])))`;
    const queries = [0.5, 0.95].map((q) => ({ expr: quantile(q), legend: `p${q * 100} {{kind}}` }));
    return { title, help: spec.help, unit: "s", queries, type: "timeseries" };
  }
  const by = spec.labels.length === 0 ? "" : ` by (${spec.labels.join(", ")})`;
  const legend = spec.labels.map((label) => `{{${label}}}`).join(" ") || "all";
  if (spec.type === "counter") {
    const queries = [{ expr: `sum${by} (rate(${selected}[$__rate_interval]))`, legend }];
    return { title: `${title}, a second`, help: spec.help, unit: "short", queries, type: "timeseries" };
  }
  const whole = name === "laneway_database_up" ? "min" : SAID_BY_ALL.test(name) ? "max" : "sum";
  const queries = [{ expr: `${whole}${by} (${selected})`, legend }];
  return { title, help: spec.help, unit: name.endsWith("_seconds") ? "s" : "short", queries, type: "timeseries" };
}

const PROCESS_PANELS: readonly Panel[] = [
  {
    title: "Resident memory",
    help: "Of each process.",
    unit: "bytes",
    queries: [{ expr: 'process_resident_memory_bytes{job=~"$job"}', legend: "{{instance}}" }],
    type: "timeseries",
  },
  {
    title: "Processor",
    help: "Cores in use by each process.",
    unit: "short",
    queries: [{ expr: 'rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval])', legend: "{{instance}}" }],
    type: "timeseries",
  },
  {
    title: "Event loop lag",
    help: "How long a callback that was due at once had to wait: handlers that do not yield.",
    unit: "s",
    queries: [{ expr: 'laneway_event_loop_lag_seconds{job=~"$job"}', legend: "{{instance}}" }],
    type: "timeseries",
  },
];

function workerPanels({ name }: DeployWorker): Panel[] {
  const of = `{job="${name}"}`;
  return [
    {
      title: "Alive",
      help: "Processes that answer.",
      unit: "short",
      queries: [{ expr: `sum(up${of})`, legend: "alive" }],
      type: "stat",
    },
    {
      title: "Slots",
      help: "Handlers running, of those that may.",
      unit: "short",
      queries: [
        { expr: `sum(laneway_items_running${of})`, legend: "running" },
        { expr: `sum(laneway_capacity${of})`, legend: "capacity" },
      ],
      type: "timeseries",
    },
    {
      title: "Outcomes, a second",
      help: METRICS.laneway_items_settled_total.help,
      unit: "short",
      queries: [{
        expr: `sum by (kind, outcome) (rate(laneway_items_settled_total${of}[$__rate_interval]))`,
        legend: "{{kind}} {{outcome}}",
      }],
      type: "timeseries",
    },
  ];
}

/** `laneway_work_queued` as `Work queued`. */
function titleOf(name: MetricName): string {
  const words = name.replace(/^laneway_/, "").replace(/_(?:total|seconds)$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function placed(rows: readonly Row[]): unknown[] {
  const panels: unknown[] = [];
  let [id, y] = [1, 0];
  for (const { title, panels: inRow, collapsed } of rows) {
    const row = { id: id++, type: "row", title, collapsed, gridPos: { x: 0, y: y++, w: WIDTH, h: 1 } };
    const below = inRow.map((panel, i) => {
      const x = (i * PANEL.w) % WIDTH;
      return panelJson(panel, id++, { x, y: y + Math.floor((i * PANEL.w) / WIDTH) * PANEL.h, ...PANEL });
    });
    y += Math.ceil((inRow.length * PANEL.w) / WIDTH) * PANEL.h;
    panels.push(...collapsed ? [{ ...row, panels: below }] : [{ ...row, panels: [] }, ...below]);
  }
  return panels;
}

function panelJson(
  { title, help, unit, queries, type }: Panel,
  id: number,
  gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>,
) {
  return {
    id,
    type,
    title,
    description: help,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: type === "stat"
      ? { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "value" }
      : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}
