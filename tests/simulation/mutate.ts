/**
 * Proves that the simulation finds faults: applies each mutation to a copy of the tree and runs seeds until one fails.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { MUTATIONS } from "./mutations.ts";
import type { Mutation } from "./mutations_storage.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TABLE = new URL("mutations.md", import.meta.url);
const COPIED = ["src", "migrations", "tests/simulation", "deno.json", "deno.lock"];
/** A mutation that makes a world spin for ever is found by its not ending. */
const LONGEST_MS = 180_000;
const AT_ONCE = 2;

/** How mutations are run. */
export interface MutationOptions {
  /** At most so many seeds each. */
  readonly seeds: number;
  readonly steps: number;
  /** Only those whose text holds this. */
  readonly only: string | undefined;
}

interface Found {
  readonly mutation: Mutation;
  /** The seed that failed; null when none did. */
  readonly seed: number | null;
  readonly checker: string;
}

/** Runs all, prints and writes the table; whether every one was found. */
export async function runMutations(options: MutationOptions): Promise<boolean> {
  const wanted = MUTATIONS.filter(({ what }) => options.only === undefined || what.includes(options.only));
  const found: Found[] = [];
  // Copied once: the tree may change while mutations run.
  const base = await Deno.makeTempDir({ prefix: "laneway-mutation-" });
  for (const path of COPIED) await copy(`${ROOT}${path}`, `${base}/${path}`);
  let next = 0;
  const lane = async () => {
    for (let mutation = wanted[next++]; mutation !== undefined; mutation = wanted[next++]) {
      const result = await runOne(base, mutation, options);
      found[wanted.indexOf(mutation)] = result;
      console.log(`${result.seed === null ? "NOT FOUND" : `seed ${result.seed}`}\t${result.checker}\t${mutation.what}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  } finally {
    await Deno.remove(base, { recursive: true });
  }
  const missed = found.filter(({ seed }) => seed === null).length;
  console.log(`${found.length - missed} of ${found.length} mutations found within ${options.seeds} seeds`);
  if (options.only === undefined) await Deno.writeTextFile(TABLE, table(found, options));
  return missed === 0;
}

async function runOne(base: string, mutation: Mutation, { seeds, steps }: MutationOptions): Promise<Found> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-mutation-" });
  try {
    for (const path of COPIED) await copy(`${base}/${path}`, `${folder}/${path}`);
    const file = `${folder}/${mutation.file}`;
    const text = await Deno.readTextFile(file);
    if (text.split(mutation.find).length !== 2) {
      throw new Error(`Cannot apply "${mutation.what}": its text stands ${text.split(mutation.find).length - 1} times`);
    }
    await Deno.writeTextFile(file, text.replace(mutation.find, () => mutation.replace));
    return { mutation, ...await simulate(folder, [`--seeds=${seeds}`, `--steps=${steps}`, "--quiet"]) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function simulate(folder: string, args: readonly string[]): Promise<{ seed: number | null; checker: string }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "tests/simulation/simulate.ts", ...args],
    cwd: folder,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, LONGEST_MS);
  const { code, stderr } = await child.output();
  clearTimeout(timer);
  if (late) return { seed: 0, checker: "does not end" };
  const told = new TextDecoder().decode(stderr);
  const failing = /^seed (\d+) fails.*\n(.*?):/m.exec(told);
  if (code !== 0 && failing === null) throw new Error(`the simulation broke: ${told.slice(-2_000)}`);
  return failing === null ? { seed: null, checker: "-" } : { seed: Number(failing[1]), checker: failing[2] ?? "" };
}

async function copy(from: string, to: string): Promise<void> {
  const { isDirectory } = await Deno.stat(from);
  if (!isDirectory) {
    await Deno.mkdir(to.slice(0, to.lastIndexOf("/")), { recursive: true });
    return await Deno.copyFile(from, to);
  }
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(from)) await copy(`${from}/${name}`, `${to}/${name}`);
}

function table(found: readonly Found[], { seeds, steps }: MutationOptions): string {
  const rows = found.map(({ mutation, seed, checker }) =>
    `| ${mutation.what} | \`${mutation.file}\` | ${seed ?? "not found"} | ${checker} |`
  );
  const missed = found.filter(({ seed }) => seed === null).length;
  return [
    "# What the simulation finds",
    "",
    `One-line faults of the product (\`mutations.ts\`), each applied to a copy of the tree, with the first of ${seeds} seeds`,
    `of ${steps} steps that finds it, and the checker that did. Made by \`deno task simulate --mutations\`.`,
    `Found: ${found.length - missed} of ${found.length}.`,
    "",
    "| fault | in | found by seed | checker |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
