/**
 * What is deployed of a worker.
 *
 * @module
 */
import type { ExistingWorker } from "../project.ts";

/** A worker, as deployment files know it. */
export interface DeployWorker {
  /** Its folder's, binary's and image's name, kebab case. */
  readonly name: string;
  readonly lane: string;
  /** Variables of its own. */
  readonly env: readonly string[];
  /** Those of `env` that hold secrets. */
  readonly secrets: readonly string[];
}

/** Whether a worker runs in a container beside a database; a host runner is a machine's, and has `deploy/systemd`. */
export function isDeployed({ opens }: ExistingWorker): boolean {
  return !opens;
}

/** A worker, as deployment files know it. A variable whose file may be named instead holds a secret. */
export function deployWorkerOf({ name, lane, env }: Pick<ExistingWorker, "name" | "lane" | "env">): DeployWorker {
  return { name, lane, env, secrets: env.filter((variable) => env.includes(`${variable}_FILE`)) };
}
