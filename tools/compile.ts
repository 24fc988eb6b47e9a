/**
 * `deno task compile [worker] [--profile general|container|host] [--target TRIPLE] [--commit HASH] [--out PATH]
 * [--project FOLDER]`: makes a worker one binary, the same for the same commit. A project is a folder that imports Laneway
 * and holds `workers/<worker>`; without one it is this repository.
 *
 * Bundled first: `deno compile` would embed every package whole, and dies on a cold cache of some of them. The commit
 * and the release are written into the entry that is bundled; permissions are fixed here and cannot be widened later.
 *
 * @module
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { parse } from "jsonc-parser";
import { buildArgs, compileArgs, entryText, type Profile, profileFor, refuseTarget } from "./compile_rules.ts";
import { readProject } from "./project.ts";
import { withSmallMap } from "./source_map.ts";

/** What is built. */
interface Build {
  /** The project's folder. */
  readonly root: string;
  /** What its workers import Laneway as; null in Laneway's own repository. */
  readonly laneway: string | null;
  readonly worker: string;
  readonly release: string;
  readonly env: readonly string[];
  readonly profile: Profile;
  readonly target: string | undefined;
  readonly commit: string;
  readonly out: string;
}

try {
  const build = await readArgs(Deno.args);
  const size = await compile(build);
  console.log(`${build.out} (${(size / 1e6).toFixed(0)} MB, profile ${build.profile}, commit ${build.commit})`);
} catch (error) {
  console.error(`compile: ${error instanceof Error ? error.message : error}`);
  Deno.exit(1);
}

async function readArgs(args: readonly string[]): Promise<Build> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      profile: { type: "string" },
      target: { type: "string" },
      commit: { type: "string" },
      out: { type: "string" },
      project: { type: "string" },
    },
  });
  const own = fileURLToPath(new URL("..", import.meta.url));
  const worker = positionals[0] ?? "shipment-notifier";
  const { root, laneway, manifest, workers: [definition] } = await readProject(values.project ?? own, worker);
  if (definition === undefined) throw new Error(`Cannot build ${worker}: there is no workers/${worker}/worker.ts`);
  const profile = profileFor(values.profile, definition.runsPrograms);
  refuseTarget(values.target, Deno.build.target, Deno.env.get("DENORT_BIN"));
  const commit = values.commit ?? await readCommit(root);
  const out = values.out ?? `dist/${worker}`;
  const { env } = definition;
  // The repository's release is that of all its workers.
  const release = (parse(manifest ?? "{}") as { version?: string }).version ?? definition.release;
  return { root, laneway, worker, release, env, profile, target: values.target, commit, out };
}

async function compile(build: Build): Promise<number> {
  const { root, laneway } = build;
  const folder = join(root, "dist/.build", build.worker);
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(
    `${folder}/main.ts`,
    entryText(build),
  );
  await run(root, buildArgs(`${folder}/main.ts`, `${folder}/worker.js`, { frozen: laneway === null }), {});
  await Deno.writeTextFile(`${folder}/worker.js`, withSmallMap(await Deno.readTextFile(`${folder}/worker.js`)));
  // The bundle's time is written into the binary.
  await Deno.utime(`${folder}/worker.js`, 0, 0);
  await run(
    root,
    compileArgs({
      bundle: `${folder}/worker.js`,
      out: build.out,
      profile: build.profile,
      target: build.target,
      env: build.env,
    }),
    // Tracing is decided when the binary is made; where it sends to is read at run time.
    // One propagator: of two, the order in the file would be left to chance, and no two builds be alike.
    { OTEL_DENO: "true", OTEL_DENO_CONSOLE: "ignore", OTEL_PROPAGATORS: "tracecontext" },
  );
  return (await Deno.stat(resolve(root, build.out))).size;
}

async function run(root: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: root,
    env,
    stdin: "null",
    stdout: "inherit",
    stderr: "piped",
  }).output();
  if (code === 0) return;
  const said = new TextDecoder().decode(stderr).trim();
  if (/base binary|denort/i.test(said)) {
    throw new Error(
      `Cannot get the runtime base that a binary is made of: allow the download, or set DENORT_BIN to the denort of ` +
        `Deno ${Deno.version.deno} for ${Deno.build.target} (${
          said.split("\n").find((line) => line.startsWith("error")) ?? "no reason given"
        })`,
    );
  }
  throw new Error(`deno ${args[0]} failed:\n${said}`);
}

async function readCommit(root: string): Promise<string> {
  try {
    const commit = await git(root, "rev-parse", "--short=12", "HEAD");
    return await git(root, "status", "--porcelain", "--untracked-files=no") === "" ? commit : `${commit}-dirty`;
  } catch {
    return "unknown";
  }
}

async function git(root: string, ...args: string[]): Promise<string> {
  const { success, stdout } = await new Deno.Command("git", { args, cwd: root, stdin: "null", stderr: "null" })
    .output();
  if (!success) throw new Error(`git ${args[0]} failed`);
  return new TextDecoder().decode(stdout).trim();
}
