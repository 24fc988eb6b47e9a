/**
 * Deployment files that are generated whole, by their paths.
 *
 * @module
 */
import { readProject } from "../project.ts";
import { deployWorkerOf, isDeployed } from "./deploy_worker.ts";
import { dashboard } from "./grafana.ts";
import { alertRules, prometheusConfig } from "./prometheus.ts";

/** The generated files of the repository in a folder, as the code now says them: path → text. */
export async function generatedFiles(root: string): Promise<ReadonlyMap<string, string>> {
  const { workers } = await readProject(root);
  const deployed = workers.filter(isDeployed).map(deployWorkerOf);
  return new Map([
    ["deploy/grafana/laneway.json", dashboard(deployed)],
    ["deploy/prometheus/laneway.rules.yml", alertRules(deployed)],
    ["deploy/prometheus/prometheus.yml", prometheusConfig(deployed)],
  ]);
}
