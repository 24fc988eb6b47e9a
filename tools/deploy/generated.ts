/**
 * Deployment files that are generated whole, by their paths.
 *
 * @module
 */
import { readProject } from "../project.ts";
import { type DeployWorker, deployWorkerOf, isDeployed } from "./deploy_worker.ts";
import { dashboard } from "./grafana.ts";
import { kubernetesWorker } from "./kubernetes.ts";
import { alertRules, prometheusConfig } from "./prometheus.ts";
import { ENVIRONMENTS, terraformName, terraformRepository, terraformWorker } from "./terraform.ts";

/** Those that tell of every worker. */
export const SHARED = [
  "deploy/grafana/laneway.json",
  "deploy/prometheus/laneway.rules.yml",
  "deploy/prometheus/prometheus.yml",
] as const;

/** The generated files of the repository in a folder, as the code now says them: path → text. */
export async function generatedFiles(root: string): Promise<ReadonlyMap<string, string>> {
  const { workers } = await readProject(root);
  return generatedFor(workers.filter(isDeployed).map(deployWorkerOf));
}

/** The generated files for a fleet of these workers, ordered by name: path → text. */
export function generatedFor(workers: readonly DeployWorker[]): ReadonlyMap<string, string> {
  return new Map([
    ["deploy/grafana/laneway.json", dashboard(workers)],
    ["deploy/prometheus/laneway.rules.yml", alertRules(workers)],
    ["deploy/prometheus/prometheus.yml", prometheusConfig(workers)],
    ...workers.flatMap((worker) => [...generatedOf(worker)]),
  ]);
}

/** The files of one worker alone: path → text. */
export function generatedOf(worker: DeployWorker): ReadonlyMap<string, string> {
  const terraform = `worker_${terraformName(worker.name)}.tf`;
  return new Map([
    [`deploy/kubernetes/${worker.name}.yaml`, kubernetesWorker(worker)],
    ...ENVIRONMENTS.map((environment): [string, string] => [
      `deploy/terraform/environments/${environment}/${terraform}`,
      terraformWorker(worker),
    ]),
    [`deploy/terraform/bootstrap/${terraform}`, terraformRepository(worker)],
  ]);
}
