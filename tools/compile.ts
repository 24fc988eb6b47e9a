/**
 * `deno task compile [worker] [--profile general|container|host] [--target TRIPLE] [--commit HASH] [--out PATH]`: makes a
 * worker one binary, the same for the same commit.
 *
 * Bundled first: `deno compile` would embed every package whole, and dies on a cold cache of some of them. The commit
 * and the release are written into the entry that is bundled; permissions are fixed here and cannot be widened later.
 *
 * @module
 */
import { parseArgs } from "node:util";
import manifest from "../deno.json" with { type: "json" };
import { buildArgs, compileArgs, entryText, type Profile, profileFor, refuseTarget } from "./compile_rules.ts";
import { withSmallMap } from "./source_map.ts";

/** What is built. */
interface Build {
  readonly worker: string;
  readonly env: readonly string[];
  readonly profile: Profile;
  readonly target: string | undefined;
  readonly commit: string;
  readonly out: string;
}

/** What is read of a worker's definition. */
interface Definition {
  readonly env?: readonly string[];
  readonly runsPrograms?: boolean;
}

const root = new URL("..", import.meta.url).pathname;

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
    },
  });
  const worker = positionals[0] ?? "shipment-notifier";
  if (!await exists(`${root}workers/${worker}/worker.ts`)) {
    throw new Error(`Cannot build ${worker}: there is no workers/${worker}/worker.ts`);
  }
  const { definition } = await import(`../workers/${worker}/worker.ts`) as { definition: Definition };
  const profile = profileFor(values.profile, definition.runsPrograms ?? false);
  refuseTarget(values.target, Deno.build.target, Deno.env.get("DENORT_BIN"));
  const commit = values.commit ?? await readCommit();
  const env = definition.env ?? [];
  return { worker, env, profile, target: values.target, commit, out: values.out ?? `dist/${worker}` };
}

async function compile(build: Build): Promise<number> {
  const folder = `${root}dist/.build/${build.worker}`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(
    `${folder}/main.ts`,
    entryText({ worker: build.worker, release: manifest.version, commit: build.commit }),
  );
  await run(buildArgs(`${folder}/main.ts`, `${folder}/worker.js`), {});
  await Deno.writeTextFile(`${folder}/worker.js`, withSmallMap(await Deno.readTextFile(`${folder}/worker.js`)));
  // The bundle's time is written into the binary.
  await Deno.utime(`${folder}/worker.js`, 0, 0);
  await run(
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
  return (await Deno.stat(build.out.startsWith("/") ? build.out : `${root}${build.out}`)).size;
}

async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
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

async function readCommit(): Promise<string> {
  try {
    const commit = await git("rev-parse", "--short=12", "HEAD");
    return await git("status", "--porcelain", "--untracked-files=no") === "" ? commit : `${commit}-dirty`;
  } catch {
    return "unknown";
  }
}

async function git(...args: string[]): Promise<string> {
  const { success, stdout } = await new Deno.Command("git", { args, cwd: root, stdin: "null", stderr: "null" })
    .output();
  if (!success) throw new Error(`git ${args[0]} failed`);
  return new TextDecoder().decode(stdout).trim();
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
