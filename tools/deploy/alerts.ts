/**
 * What wakes an operator: each alert, when it fires, and what it says. `deploy/runbook.md` has a section for each.
 *
 * @module
 */
import type { MetricName } from "../../src/core/metrics.ts";

/** One alert. */
export interface Alert {
  /** Upper camel case; the runbook's heading. */
  readonly name: string;
  /** PromQL; it fires for every series that comes out. */
  readonly expr: string;
  /** How long that must last, as Prometheus writes it. */
  readonly for: string;
  /** `critical` wakes people, `warning` waits for the morning. */
  readonly severity: "critical" | "warning";
  /** One line, with Prometheus' templates. */
  readonly summary: string;
  /** What makes it fire, for the test of the rules: series of a real worker, set to other values. */
  readonly trigger: readonly Trigger[];
}

/** A series and its values a minute apart, as `promtool` writes them. Without one the series is missing. */
export interface Trigger {
  readonly metric: MetricName | "up";
  readonly labels?: Readonly<Record<string, string>>;
  readonly values: string;
}

/**
 * Counters that rose within a time, by some of their labels, also those of a process that was started again. `increase()` by
 * itself would not see the first count of a series that began with it, as one of a kind or an outcome does.
 */
function rose(counter: string, by: string, within: string): string {
  return `sum by (${by}) (increase(${counter}[${within}]) > 0 or (${counter} > 0 unless ${counter} offset ${within}))`;
}

/** The alerts for a fleet whose workers serve these lanes. */
export function alertsFor(lanes: readonly string[]): readonly Alert[] {
  return [...QUEUE, ...lanes.map(noLiveWorker), ...FENCES, ...UPKEEP, ...HOSTS, ...PROCESS];
}

const QUEUE: readonly Alert[] = [
  {
    name: "LanewayOldestAgeHigh",
    expr: "max(laneway_queue_oldest_age_seconds) > 300",
    for: "5m",
    severity: "critical",
    summary: "The oldest item that is due has waited {{ $value | humanizeDuration }}.",
    trigger: [{ metric: "laneway_queue_oldest_age_seconds", values: "400+60x20" }],
  },
  {
    name: "LanewayDeadLetters",
    expr: "max(laneway_work_failed) > (max(laneway_work_failed offset 15m) or vector(0))",
    for: "0m",
    severity: "warning",
    summary: "There are more dead letters than 15 minutes ago: {{ $value }} are kept.",
    trigger: [{ metric: "laneway_work_failed", values: "0x14 3x10" }],
  },
  {
    name: "LanewayRunsFail",
    expr: 'sum by (kind) (rate(laneway_items_settled_total{outcome=~"retried|dead_lettered"}[15m])) / ' +
      "sum by (kind) (rate(laneway_items_settled_total[15m])) > 0.5",
    for: "15m",
    severity: "warning",
    summary: "More than half of the runs of {{ $labels.kind }} fail.",
    trigger: [{ metric: "laneway_items_settled_total", labels: { outcome: "retried" }, values: "0+600x40" }],
  },
  {
    name: "LanewayRecordsParked",
    expr: "max(laneway_records_parked) > 100",
    for: "30m",
    severity: "warning",
    summary: "{{ $value }} records are parked: something they wait for is away.",
    trigger: [{ metric: "laneway_records_parked", values: "500x40" }],
  },
  {
    name: "LanewayOutboxLag",
    expr: "max(laneway_outbox_lag_seconds) > 120",
    for: "5m",
    severity: "critical",
    summary: "The oldest outbox row has waited {{ $value | humanizeDuration }} to be handed on.",
    trigger: [{ metric: "laneway_outbox_lag_seconds", values: "300x20" }],
  },
  {
    name: "LanewayOutboxStuck",
    expr: "max(laneway_outbox_too_old) > 0 or max(laneway_outbox_unknown_kind) > 0",
    for: "10m",
    severity: "warning",
    summary: "{{ $value }} outbox rows are not handed on by themselves: too old, or of a kind that no worker knows.",
    trigger: [{ metric: "laneway_outbox_too_old", values: "1x20" }],
  },
];

function noLiveWorker(lane: string): Alert {
  return {
    name: "LanewayNoLiveWorker",
    expr: `absent(up{worker_lane="${lane}"} == 1)`,
    for: "2m",
    severity: "critical",
    summary: `No worker of lane ${lane} answers.`,
    trigger: [{ metric: "up", values: "0x10" }],
  };
}

const FENCES: readonly Alert[] = [
  {
    name: "LanewayLeasesLost",
    expr: rose("laneway_leases_lost_total", "kind", "15m"),
    for: "0m",
    severity: "warning",
    summary: "Runs of {{ $labels.kind }} lost their leases and were stopped; their items run again.",
    trigger: [{ metric: "laneway_leases_lost_total", values: "_x10 1x10" }],
  },
  {
    name: "LanewayLeaseConflicts",
    expr: rose('laneway_items_settled_total{outcome="refused"}', "kind", "15m"),
    for: "0m",
    severity: "warning",
    summary: "Outcomes of {{ $labels.kind }} were refused, as another claim held their items.",
    trigger: [{ metric: "laneway_items_settled_total", labels: { outcome: "refused" }, values: "_x10 1x10" }],
  },
  {
    name: "LanewayRenewalsFail",
    // Longer than one blip is seen: a failover is over by itself, and wakes nobody.
    expr: rose('laneway_lease_renewals_total{outcome="failed"}', "job", "5m"),
    for: "10m",
    severity: "critical",
    summary: "{{ $labels.job }} fails to renew its leases.",
    trigger: [{ metric: "laneway_lease_renewals_total", labels: { outcome: "failed" }, values: "0x5 1+2x20" }],
  },
  {
    name: "LanewayClaimsFail",
    expr: rose("laneway_claim_failures_total", "job", "2m"),
    for: "5m",
    severity: "critical",
    summary: "{{ $labels.job }} fails to claim.",
    trigger: [{ metric: "laneway_claim_failures_total", values: "0+1x20" }],
  },
  {
    name: "LanewayDeafHandlers",
    expr: "max by (job, instance) (laneway_deaf_handlers) > 0",
    for: "10m",
    severity: "warning",
    summary: "{{ $value }} handlers of {{ $labels.instance }} ignore their abort signal and hold their slots.",
    trigger: [{ metric: "laneway_deaf_handlers", values: "2x20" }],
  },
];

const UPKEEP: readonly Alert[] = [
  {
    name: "LanewayNobodySweeps",
    expr: '(sum(rate(laneway_sweep_steps_total{outcome="ok"}[10m])) or vector(0)) == 0',
    for: "5m",
    severity: "critical",
    summary: "No worker sweeps: what dead workers held is not taken back.",
    trigger: [{ metric: "laneway_sweep_steps_total", labels: { outcome: "ok" }, values: "7x30" }],
  },
  {
    name: "LanewaySweepFails",
    expr: `${rose('laneway_sweep_steps_total{outcome="failed"}', "step", "15m")} unless ` +
      'sum by (step) (increase(laneway_sweep_steps_total{outcome="ok"}[15m])) > 0',
    for: "5m",
    severity: "warning",
    summary: "The sweep's step {{ $labels.step }} fails each time it runs.",
    trigger: [{ metric: "laneway_sweep_steps_total", labels: { outcome: "failed" }, values: "_x5 1+1x15" }],
  },
  {
    name: "LanewayDatabaseDown",
    expr: "max by (job, instance) (laneway_database_up) == 0",
    for: "1m",
    severity: "critical",
    summary: "{{ $labels.instance }} does not reach its database.",
    trigger: [{ metric: "laneway_database_up", values: "0x10" }],
  },
];

const HOSTS: readonly Alert[] = [
  {
    name: "LanewayHostSilent",
    expr: "max by (host) (laneway_host_heartbeat_age_seconds) > 120",
    for: "1m",
    severity: "warning",
    summary: "Host {{ $labels.host }} was last heard of {{ $value | humanizeDuration }} ago.",
    trigger: [{ metric: "laneway_host_heartbeat_age_seconds", values: "60+60x10" }],
  },
];

const PROCESS: readonly Alert[] = [
  {
    name: "LanewayLogLinesDropped",
    expr: rose("laneway_log_lines_dropped_total", "job, instance", "15m"),
    for: "0m",
    severity: "warning",
    summary: "{{ $labels.instance }} dropped log lines: whatever reads them does not keep up.",
    trigger: [{ metric: "laneway_log_lines_dropped_total", values: "0x5 4x10" }],
  },
];
