/**
 * The one catalogue of metrics. Labels are bounded: kind, lane, outcome, step, host and other small sets, never an org or id.
 *
 * @module
 */

/** What each metric is. README's table is generated from here. */
export const METRICS = {
  laneway_items_claimed_total: { type: "counter", help: "Items claimed.", labels: ["kind", "lane"] },
  laneway_items_settled_total: {
    type: "counter",
    help: "Runs handed back, by outcome: completed, retried, dead_lettered, deferred, released, refused.",
    labels: ["kind", "lane", "outcome"],
  },
  laneway_items_enqueued_total: {
    type: "counter",
    help: "Enqueues, by outcome: inserted, id_exists, key_exists.",
    labels: ["kind", "outcome"],
  },
  laneway_items_orphaned_total: { type: "counter", help: "Items failed because their org is gone.", labels: ["kind"] },
  laneway_items_requeued_total: {
    type: "counter",
    help: "Expired claims the sweep took back, by outcome: requeued, dead_lettered.",
    labels: ["outcome"],
  },
  laneway_run_duration_seconds: {
    type: "histogram",
    help: "Handler time, by outcome.",
    labels: ["kind", "outcome"],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 900],
  },
  laneway_start_latency_seconds: {
    type: "histogram",
    help: "From the time an item was due to the start of its handler.",
    labels: ["kind"],
    buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.2, 1, 5, 30, 300],
  },
  laneway_items_running: { type: "gauge", help: "Handlers running now.", labels: [] },
  laneway_capacity: { type: "gauge", help: "Handlers this worker may run at once.", labels: [] },
  laneway_deaf_handlers: {
    type: "gauge",
    help: "Handlers that ignore their abort signal and hold a slot.",
    labels: [],
  },
  laneway_lease_renewals_total: {
    type: "counter",
    help: "Lease renewals by outcome: renewed, refused, failed.",
    labels: ["outcome"],
  },
  laneway_leases_lost_total: { type: "counter", help: "Runs aborted because their lease was lost.", labels: ["kind"] },
  laneway_claim_failures_total: { type: "counter", help: "Claims that failed and were retried later.", labels: [] },
  laneway_sweep_steps_total: {
    type: "counter",
    help: "Sweep steps run, by outcome: ok, failed.",
    labels: ["step", "outcome"],
  },
  laneway_sweep_rows_total: { type: "counter", help: "Rows a sweep step worked on.", labels: ["step"] },
  laneway_outbox_relayed_total: { type: "counter", help: "Outbox rows handed on.", labels: ["outcome"] },
  laneway_queue_oldest_age_seconds: {
    type: "gauge",
    help: "Age of the oldest item that is due and waits.",
    labels: [],
  },
  laneway_work_queued: { type: "gauge", help: "Items due and waiting.", labels: [] },
  laneway_work_failed: { type: "gauge", help: "Dead letters kept.", labels: [] },
  laneway_records_parked: { type: "gauge", help: "Records parked.", labels: [] },
  laneway_outbox_lag_seconds: { type: "gauge", help: "Age of the oldest pending outbox row.", labels: [] },
  laneway_outbox_unknown_kind: {
    type: "gauge",
    help: "Pending outbox rows of a kind this build does not know.",
    labels: [],
  },
  laneway_outbox_too_old: {
    type: "gauge",
    help: "Pending outbox rows older than the key retention; they are not relayed, look at them.",
    labels: [],
  },
  laneway_host_heartbeat_age_seconds: {
    type: "gauge",
    help:
      "Since a host's last heartbeat, as a worker with a database sees it; none for one that never beat or is switched off.",
    labels: ["host"],
  },
  laneway_host_in_flight: {
    type: "gauge",
    help: "Items a host holds by leases that have not passed.",
    labels: ["host"],
  },
  laneway_database_up: {
    type: "gauge",
    help: "1 while the last statement of the loop reached the database.",
    labels: [],
  },
  laneway_listener_reconnects_total: { type: "counter", help: "Times the topic listener connected again.", labels: [] },
  laneway_log_lines_dropped_total: { type: "counter", help: "Log lines dropped on a full pipe.", labels: [] },
  laneway_build_info: {
    type: "gauge",
    help: "1, labelled with the release and commit.",
    labels: ["version", "commit"],
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** One entry of the catalogue. */
export interface MetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

/** A metric's name. */
export type MetricName = keyof typeof METRICS;

/** Labels of one sample. */
export type MetricLabels = Readonly<Record<string, string>>;

/** Where metrics are written; nothing in Laneway reads them back. */
export interface Metrics {
  /** Adds to a counter. Default 1. */
  count(name: MetricName, labels?: MetricLabels, by?: number): void;
  /** Sets a gauge. */
  set(name: MetricName, value: number, labels?: MetricLabels): void;
  /** Takes a series away, for a label whose bearer is gone. Optional: where it is absent the series stays. */
  drop?(name: MetricName, labels: MetricLabels): void;
  /** Adds an observation to a histogram. */
  observe(name: MetricName, value: number, labels?: MetricLabels): void;
}

/** Metrics that go nowhere. */
export const noMetrics: Metrics = { count() {}, set() {}, observe() {} };
