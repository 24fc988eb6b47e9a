/**
 * Prometheus' files: what is scraped, and what is alarmed.
 *
 * @module
 */
import { stringify } from "yaml";
import { type Alert, alertsFor } from "./alerts.ts";
import type { DeployWorker } from "./deploy_worker.ts";

const GENERATED = "# Generated: deno task docs. Change tools/deploy instead.\n";
const RUNBOOK = "deploy/runbook.md";

/** The alert rules, as Prometheus reads them. */
export function alertRules(workers: readonly DeployWorker[]): string {
  const lanes = [...new Set(workers.map(({ lane }) => lane))].sort();
  const rules = alertsFor(lanes).map(ruleOf);
  return GENERATED + stringify({ groups: [{ name: "laneway", rules }] }, { lineWidth: 0 });
}

function ruleOf({ name, expr, for: lasts, severity, summary }: Alert) {
  return {
    alert: name,
    expr,
    for: lasts,
    labels: { severity },
    annotations: { summary, runbook_url: `${RUNBOOK}#${name.toLowerCase()}` },
  };
}

/** The scrape configuration of the compose file: each worker's replicas by their service's name. */
export function prometheusConfig(workers: readonly DeployWorker[]): string {
  const config = {
    global: { scrape_interval: "15s", evaluation_interval: "15s" },
    rule_files: ["laneway.rules.yml"],
    scrape_configs: workers.map(({ name, lane }) => ({
      job_name: name,
      dns_sd_configs: [{ names: [name], type: "A", port: 9464 }],
      // Says which lanes have somebody alive: LanewayNoLiveWorker. Not `lane`, which metrics have as a label of their own.
      relabel_configs: [{ target_label: "worker_lane", replacement: lane }],
    })),
  };
  return GENERATED + stringify(config, { lineWidth: 0 });
}
