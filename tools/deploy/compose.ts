/**
 * Workers in the compose file: each is two services, its migrations and itself.
 *
 * @module
 */
import { type Document, isMap, parseDocument, Scalar } from "yaml";
import type { DeployWorker } from "./deploy_worker.ts";

/** A compose file that cannot be edited; the message says what it lacks. */
export class BadCompose extends Error {}

/**
 * Adds a worker's services to a compose file; one that is there stays as it is. Comments and everything else stay.
 *
 * @throws {BadCompose} The file is no compose file of this shape.
 */
export function addComposeWorker(text: string, worker: DeployWorker): string {
  const document = parseDocument(text);
  const services = document.get("services");
  if (document.errors.length > 0 || !isMap(services) || document.get("x-worker") === undefined) {
    throw new BadCompose("Cannot add to the compose file: it must have services and x-worker, as Laneway's own has");
  }
  if (services.has(worker.name)) return text;
  for (const [name, service] of Object.entries(servicesOf(worker))) {
    const key = new Scalar(name);
    key.spaceBefore = true;
    services.set(key, node(document, service));
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** The services of a worker, by name. `extends` is spelled as a merge of `x-worker`. */
function servicesOf({ name, secrets }: DeployWorker): Record<string, Record<string, unknown>> {
  const environment = Object.fromEntries(secrets.map((secret) => [secret, `\${${secret}:-}`]));
  return {
    // Built once, by the worker: of two builds of one tag that run at once the second is refused.
    [`${name}-migrate`]: {
      image: `laneway/${name}`,
      pull_policy: "never",
      command: ["migrate", "up"],
      environment: { LANEWAY_MIGRATE_DATABASE_URL: "postgres://app_owner:local@postgres/work" },
      depends_on: { postgres: { condition: "service_healthy" } },
    },
    [name]: {
      "<<": "*worker",
      build: { context: "../..", args: { WORKER: name } },
      image: `laneway/${name}`,
      environment: { "<<": "*urls", ...environment },
      depends_on: { [`${name}-migrate`]: { condition: "service_completed_successfully" } },
    },
  };
}

/** A node in which `"<<": "*name"` is an alias. */
function node(document: Document, value: unknown): unknown {
  const made = document.createNode(value);
  const visit = (at: unknown) => {
    if (!isMap(at)) return;
    for (const pair of at.items) {
      if (String(pair.key) === "<<") {
        const anchor = String(pair.value).slice(1);
        const target = findAnchor(document, anchor);
        if (target === undefined) throw new BadCompose(`Cannot add to the compose file: it has no anchor &${anchor}`);
        pair.value = document.createAlias(target as never, anchor);
      } else visit(pair.value);
    }
  };
  visit(made);
  return made;
}

function findAnchor(document: Document, anchor: string): unknown {
  for (const path of [["x-worker"], ["x-worker", "environment"]]) {
    const found = document.getIn(path, true) as { anchor?: string } | undefined;
    if (found?.anchor === anchor) return found;
  }
  return undefined;
}
