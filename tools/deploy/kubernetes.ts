/**
 * A worker on Kubernetes: its migrations, itself, and how many of it may be away at once.
 *
 * @module
 */
import { stringify } from "yaml";
import type { DeployWorker } from "./deploy_worker.ts";

const HTTP_PORT = 9464;
/** Longer than `--drain-grace` and what follows it. */
const GRACE_SECONDS = 30;

/** The worker's manifests: a Job, a Deployment, a PodDisruptionBudget. */
export function kubernetesWorker(worker: DeployWorker): string {
  const head = "# Generated: deno task docs. Change tools/deploy instead, or patch it in an overlay.\n" +
    `# ${worker.name} on lane ${worker.lane}. Its secrets are keys of the Secret ${worker.name}, mounted under /run/secrets:\n` +
    `# ${secretKeys(worker).join(", ")}; and migrate-database-url of the Secret ${worker.name}-migrate.\n`;
  const documents = [migrateJob(worker), deployment(worker), disruptionBudget(worker)];
  return head + documents.map((document) => stringify(document, { lineWidth: 0 })).join("---\n");
}

function secretKeys({ secrets }: DeployWorker): string[] {
  return ["database-url", "system-database-url", ...secrets.map(keyOf)];
}

/** `LANEWAY_WEBHOOK_SECRET` as `webhook-secret`. */
function keyOf(variable: string): string {
  return variable.replace(/^LANEWAY_/, "").toLowerCase().replaceAll("_", "-");
}

function labelsOf({ name }: DeployWorker, component: "worker" | "migrate" = "worker") {
  return { ...selectorOf(name, component), "app.kubernetes.io/part-of": "laneway" };
}

/** The pods that serve, apart from those that migrate. */
function selectorOf(name: string, component: "worker" | "migrate" = "worker") {
  return { "app.kubernetes.io/name": name, "app.kubernetes.io/component": component };
}

const POD_SECURITY = {
  runAsNonRoot: true,
  runAsUser: 65532,
  runAsGroup: 65532,
  fsGroup: 65532,
  seccompProfile: { type: "RuntimeDefault" },
};
const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

/** Every build brings its own migrations; the Job is replaced with each release. */
function migrateJob(worker: DeployWorker) {
  const name = `${worker.name}-migrate`;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels: labelsOf(worker, "migrate") },
    spec: {
      backoffLimit: 3,
      ttlSecondsAfterFinished: 86_400,
      template: {
        metadata: { labels: labelsOf(worker, "migrate") },
        spec: {
          restartPolicy: "Never",
          automountServiceAccountToken: false,
          securityContext: POD_SECURITY,
          containers: [{
            name: "migrate",
            image: worker.name,
            args: ["migrate", "up"],
            env: [{ name: "LANEWAY_MIGRATE_DATABASE_URL_FILE", value: "/run/secrets/migrate-database-url" }],
            securityContext: CONTAINER_SECURITY,
            volumeMounts: [{ name: "secrets", mountPath: "/run/secrets", readOnly: true }],
          }],
          volumes: [{ name: "secrets", secret: { secretName: name } }],
        },
      },
    },
  };
}

function deployment(worker: DeployWorker) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: worker.name, labels: labelsOf(worker) },
    spec: {
      replicas: 2,
      selector: { matchLabels: selectorOf(worker.name) },
      // Never more than the replicas: each opens its own connections.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      template: {
        metadata: {
          labels: labelsOf(worker),
          annotations: {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": String(HTTP_PORT),
            "prometheus.io/path": "/metrics",
            "prometheus.io/lane": worker.lane,
          },
        },
        spec: {
          terminationGracePeriodSeconds: GRACE_SECONDS,
          automountServiceAccountToken: false,
          securityContext: POD_SECURITY,
          containers: [workerContainer(worker)],
          volumes: [{ name: "secrets", secret: { secretName: worker.name } }],
        },
      },
    },
  };
}

function workerContainer(worker: DeployWorker) {
  const files = ["LANEWAY_DATABASE_URL", "LANEWAY_SYSTEM_DATABASE_URL", ...worker.secrets];
  const probe = (path: string, rest: Readonly<Record<string, number>>) => ({
    httpGet: { path, port: "http" },
    ...rest,
  });
  return {
    name: "worker",
    image: worker.name,
    env: [
      { name: "LANEWAY_LANE", value: worker.lane },
      ...files.map((variable) => ({ name: `${variable}_FILE`, value: `/run/secrets/${keyOf(variable)}` })),
    ],
    ports: [{ name: "http", containerPort: HTTP_PORT }],
    // A worker waits for its database as long as it takes: that is no reason to be restarted.
    startupProbe: probe("/livez", { periodSeconds: 2, failureThreshold: 30 }),
    // The event loop alone: a database that is away is not mended by a restart, and what runs would be lost.
    livenessProbe: probe("/livez", { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }),
    // Whether a rollout may go on.
    readinessProbe: probe("/readyz", { periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 }),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "512Mi" } },
    securityContext: CONTAINER_SECURITY,
    volumeMounts: [{ name: "secrets", mountPath: "/run/secrets", readOnly: true }],
  };
}

function disruptionBudget(worker: DeployWorker) {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: worker.name, labels: labelsOf(worker) },
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(worker.name) } },
  };
}
