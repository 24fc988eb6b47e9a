/**
 * What a worker has in files that it shares with others, and in those of a project that is being made.
 *
 * @module
 */
import { parse } from "jsonc-parser";
import { addComposeWorker } from "../deploy/compose.ts";
import { deployWorkerOf } from "../deploy/deploy_worker.ts";
import { generatedFor, generatedOf, SHARED } from "../deploy/generated.ts";
import { addToKustomization } from "../deploy/kustomization.ts";
import { addToMatrix } from "../deploy/workflows.ts";
import { addBlock, addLine, addToJson } from "./edits.ts";
import { type NewWorker, rename } from "./names.ts";
import { lanewayFrom, ownFile, type Project, read } from "../project.ts";

/** One thing to be seen to. */
export interface Entry {
  /** Relative to the project. */
  readonly path: string;
  /** What is done in it, for people; empty for a file of the worker's own. */
  readonly what: string;
  /** Gives the file's text from the one there is; null leaves it alone. */
  edit(there: string | null): string | null;
}

/** What is asked for. */
export interface EntryOptions {
  readonly container: boolean;
  /** Whether the worker defines its kind. */
  readonly ownKind: boolean;
}

/** Entries for a worker. @throws {NoPlace} From `edit`: a file lacks its mark. */
export function sharedEntries(project: Project, to: NewWorker, options: EntryOptions): Entry[] {
  const { laneway } = project;
  return [
    ...(laneway === null ? kindEntries(to, options) : projectEntries(project)),
    taskEntry(project, to),
    ...(options.ownKind ? [envEntry(to)] : []),
    ...(laneway === null ? deployEntries(project, to, options) : []),
  ];
}

/** What is deployed: files of the worker's own, lists it is on, and what is generated from all workers. */
function deployEntries({ workers }: Project, to: NewWorker, { container, ownKind }: EntryOptions): Entry[] {
  const standing = workers.find(({ name }) => name === to.worker);
  // A second worker of a kind has the variables, and the secrets, of the one that defines it.
  const definer = workers.find(({ name, kinds }) => name !== to.worker && kinds.includes(to.kind));
  const env = ownKind ? [rename("LANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT", to)] : definer?.env ?? [];
  const worker = deployWorkerOf(standing ?? { name: to.worker, lane: to.lane, env });
  const generated = `what is generated of ${to.worker}`;
  const changed = (path: string, what: string, edit: (there: string) => string): Entry => ({
    path,
    what,
    edit: (there) => there === null ? null : edit(there),
  });
  const others = workers.filter(({ name, opens }) => !opens && name !== to.worker).map(deployWorkerOf);
  const all = generatedFor([...others, worker].sort((a, b) => a.name < b.name ? -1 : 1));
  return [
    changed(
      "deploy/kubernetes/kustomization.yaml",
      `${to.worker}.yaml and its image`,
      (there) => addToKustomization(there, to.worker),
    ),
    ...(container
      ? [
        changed("deploy/compose/docker-compose.yml", `services ${to.worker} and ${to.worker}-migrate`, (there) =>
          addComposeWorker(there, worker)),
      ]
      : []),
    ...["staging", "production", "release"].map((name) =>
      changed(`.github/workflows/${name}.yml`, `the worker ${to.worker}`, (there) => addToMatrix(there, to.worker))
    ),
    ...[...generatedOf(worker)].map(([path, text]): Entry => ({ path, what: generated, edit: () => text })),
    ...SHARED.map((path) => changed(path, generated, () => all.get(path) ?? "")),
  ];
}

function taskEntry({ root, laneway }: Project, { worker }: NewWorker): Entry {
  const command = laneway === null
    ? `deno run -A tools/compile.ts ${worker}`
    : `deno run -A ${lanewayFrom(root, "tools/compile.ts")} --project . ${worker}`;
  return {
    path: "deno.json",
    what: `task compile:${worker}`,
    edit: (there) => there === null ? null : addToJson(there, [[["tasks", `compile:${worker}`], command]]),
  };
}

function kindEntries({ kind, worker, record }: NewWorker, { ownKind }: EntryOptions): Entry[] {
  if (!ownKind) return [];
  const line = `| \`${kind}\` | of the ${worker}: work on one ${record.replaceAll("_", " ")}, once |`;
  const path = "src/work/README.md";
  const edit = (there: string | null) =>
    there === null ? null : addLine(there, line, { name: "kinds", has: `\`${kind}\``, file: path });
  return [{ path, what: `the kind ${kind}`, edit }];
}

function envEntry(to: NewWorker): Entry {
  const path = ".env.example";
  const has = rename("# sample-worker", to);
  const block = rename("# sample-worker\nLANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT=30s\n", to);
  const edit = (there: string | null) =>
    there === null ? null : addBlock(there, block, { before: "# end of workers", has, file: path });
  return { path, what: `${to.worker}'s variables`, edit };
}

/** Packages that `mod.ts` and `testing.ts` reach: a project that imports them names these, and none of our own tests' and tools'. */
export const REACHED: readonly string[] = [
  ...["@logtape/logtape", "@opentelemetry/api", "commander", "fast-check", "postgres", "prom-client", "uuid", "zod"],
];

interface Manifest {
  readonly imports: Readonly<Record<string, string>>;
  readonly unstable: readonly string[];
  readonly compilerOptions: Readonly<Record<string, unknown>>;
  readonly fmt: { readonly lineWidth: number };
}

/** The files of a project of one's own: made where they are missing, and else given what they lack. */
function projectEntries({ root }: Project): Entry[] {
  const { imports, unstable, compilerOptions, fmt } = parse(
    read(ownFile("deno.json")) ?? "{}",
  ) as Manifest;
  const packages = Object.entries(imports).filter(([name]) => REACHED.includes(name));
  const values: (readonly [readonly string[], unknown])[] = [
    [["nodeModulesDir"], "none"],
    [["unstable"], unstable],
    [["imports", "laneway"], lanewayFrom(root, "mod.ts")],
    ...packages.map(([name, version]): readonly [readonly string[], unknown] => [["imports", name], version]),
    [["compilerOptions"], compilerOptions],
    [["fmt"], { lineWidth: fmt.lineWidth, exclude: ["dist/", "**/*.md", "**/*.sql"] }],
    [["exclude"], ["dist/"]],
    [["tasks", "test"], "deno test -A"],
    [["tasks", "ok"], "deno fmt --check && deno lint && deno check workers && deno test -A"],
  ];
  return [
    { path: "deno.json", what: "what Laneway needs", edit: (there) => addToJson(there ?? "{}\n", values) },
    { path: ".gitignore", what: "", edit: (there) => there ?? "dist/\n*.db\n*.db-*\n.env\n" },
    { path: ".env.example", what: "", edit: (there) => there ?? ENV_EXAMPLE },
  ];
}

const ENV_EXAMPLE = `# Local values. Copy to .env: deno run --env-file, or set -a; . ./.env; set +a.
LANEWAY_STORE=sqlite:./work.db
LANEWAY_LOG_FORMAT=text

# end of workers
`;
