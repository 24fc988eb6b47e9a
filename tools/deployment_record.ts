/**
 * `deno run -A tools/deployment_record.ts write|read …`: which image of each worker a commit's staging build made, kept as
 * deployments of the repository's host, so that production promotes that very image and never builds one.
 *
 *   write --commit SHA --worker NAME --digest sha256:…    records one
 *   read  --commit SHA --workers NAME,NAME                prints {"NAME":"sha256:…",…}; fails when one is missing
 *
 * From the environment: GITHUB_REPOSITORY (owner/name), GITHUB_TOKEN, GITHUB_API_URL. Exit codes: 0, 1 refused by the host or
 * a record that is missing, 2 a wrong argument.
 *
 * @module
 */
import { parseArgs } from "node:util";

/** The host's deployments. */
export interface RecordHost {
  readonly apiUrl: string;
  /** `owner/name`. */
  readonly repository: string;
  readonly token: string;
}

/** One worker's image. */
export interface DeploymentRecord {
  readonly worker: string;
  readonly digest: string;
}

/** A wrong argument. */
export class BadArgument extends Error {}

const ENVIRONMENT = "staging";
const TASK = "laneway-image";
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const COMMIT = /^[0-9a-f]{40}$/;
const PAGES = 20;

/** Records a worker's image of a commit. Repeating it is fine; the latest record counts. */
export async function writeRecord(host: RecordHost, commit: string, record: DeploymentRecord): Promise<void> {
  checkCommit(commit);
  if (!DIGEST.test(record.digest)) {
    throw new BadArgument(`Cannot record --digest ${record.digest}: it must be sha256: and 64 hexadecimal digits`);
  }
  await ask(host, "POST", `/repos/${host.repository}/deployments`, {
    ref: commit,
    task: TASK,
    environment: ENVIRONMENT,
    auto_merge: false,
    required_contexts: [],
    description: `${record.worker} ${record.digest}`.slice(0, 140),
    payload: record,
  });
}

/** Reads the images of a commit. @throws {Error} One of `workers` has no record: staging did not build it. */
export async function readRecords(
  host: RecordHost,
  commit: string,
  workers: readonly string[],
): Promise<Record<string, string>> {
  checkCommit(commit);
  const found: Record<string, string> = {};
  for (let page = 1; page <= PAGES; page++) {
    const query = `sha=${commit}&task=${TASK}&environment=${ENVIRONMENT}&per_page=100&page=${page}`;
    const records = await ask(host, "GET", `/repos/${host.repository}/deployments?${query}`);
    if (!Array.isArray(records)) throw new Error("Cannot read deployments: the host answered with no list");
    // The latest come first.
    for (const { worker, digest } of records.map(recordOf)) if (DIGEST.test(digest)) found[worker] ??= digest;
    if (records.length < 100) break;
  }
  const missing = workers.filter((worker) => found[worker] === undefined);
  if (missing.length === 0) return Object.fromEntries(workers.map((worker) => [worker, found[worker] ?? ""]));
  throw new Error(
    `Cannot promote ${commit}: staging recorded no image of ${
      missing.join(", ")
    }; let the staging workflow build it first`,
  );
}

/** What a deployment says; a payload comes back as text or as an object. */
function recordOf(deployment: unknown): DeploymentRecord {
  const { payload } = deployment as { readonly payload?: unknown };
  const told = (typeof payload === "string" ? parsed(payload) : payload) as Partial<DeploymentRecord> | null;
  return { worker: String(told?.worker ?? ""), digest: String(told?.digest ?? "") };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function checkCommit(commit: string): void {
  if (!COMMIT.test(commit)) {
    throw new BadArgument(`Cannot use --commit ${commit}: give all 40 hexadecimal digits of it`);
  }
}

async function ask(host: RecordHost, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${host.apiUrl}${path}`, {
    method,
    redirect: "manual",
    signal: AbortSignal.timeout(30_000),
    headers: {
      authorization: `Bearer ${host.token}`,
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`Cannot ${method} ${path}: the host answered ${response.status}: ${text.slice(0, 300)}`);
  }
  return parsed(text);
}

async function main(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  const { values } = parseArgs({
    args: rest,
    options: {
      commit: { type: "string" },
      worker: { type: "string" },
      digest: { type: "string" },
      workers: { type: "string" },
    },
  });
  const need = (name: keyof typeof values) => {
    const value = values[name];
    if (value === undefined || value === "") throw new BadArgument(`Cannot ${command} without --${name}`);
    return value;
  };
  const env = (name: string) => {
    const value = Deno.env.get(name);
    if (!value) throw new BadArgument(`Cannot reach the host without ${name} in the environment`);
    return value;
  };
  if (command !== "write" && command !== "read") {
    throw new BadArgument(`Cannot ${command ?? "do nothing"}: use write or read`);
  }
  const host = {
    apiUrl: Deno.env.get("GITHUB_API_URL") ?? "https://api.github.com",
    repository: env("GITHUB_REPOSITORY"),
    token: env("GITHUB_TOKEN"),
  };
  if (command === "write") {
    return await writeRecord(host, need("commit"), { worker: need("worker"), digest: need("digest") });
  }
  const workers = need("workers").split(",").map((worker) => worker.trim()).filter((worker) => worker !== "");
  console.log(JSON.stringify(await readRecords(host, need("commit"), workers)));
}

if (import.meta.main) {
  try {
    await main(Deno.args);
  } catch (error) {
    console.error(`deployment-record: ${error instanceof Error ? error.message : error}`);
    Deno.exit(error instanceof BadArgument || error instanceof TypeError ? 2 : 1);
  }
}
