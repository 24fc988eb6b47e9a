/**
 * Whether the model finds faults: makes each of `mutations.ts` in a copy of the tree and runs sequences there.
 *
 *     deno run -A tests/model/mutate.ts [part of a name]
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { type Mutation, MUTATIONS } from "./mutations.ts";

/** Enough to find each of them; the report says in which sequence it was. */
const RUNS = 5_000;
const COPIED = ["src", "tests", "migrations", "mod.ts", "testing.ts", "deno.json", "deno.lock"];

const root = fileURLToPath(new URL("../../", import.meta.url));
const copy = await Deno.makeTempDir({ prefix: "laneway-mutants-" });
let survived = 0;
try {
  const { success } = await new Deno.Command("cp", { args: ["-r", ...COPIED.map((part) => root + part), copy] })
    .output();
  if (!success) throw new Error(`Cannot copy the tree to ${copy}`);
  const wanted = Deno.args[0] ?? "";
  const chosen = MUTATIONS.filter(({ name }) => name.includes(wanted));
  if (chosen.length === 0) throw new Error(`Cannot find a mutation by "${wanted}": give part of a name`);
  for (const mutation of chosen) await tryOne(mutation);
} finally {
  await Deno.remove(copy, { recursive: true });
}
console.log(survived === 0 ? "all were found" : `${survived} were not found`);
Deno.exit(survived === 0 ? 0 : 1);

async function tryOne({ name, store, file, from, to }: Mutation): Promise<void> {
  const path = `${copy}/src/work/${file}`;
  const text = await Deno.readTextFile(path);
  if (!text.includes(from)) throw new Error(`there is no "${from}" in ${file}: mend the mutation "${name}"`);
  await Deno.writeTextFile(path, text.replaceAll(from, to));
  const args = ["run", "-A", "--no-check", "tests/model/main.ts", "--store", store, "--runs", String(RUNS)];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: copy }).output();
  await Deno.writeTextFile(path, text);
  const said = new TextDecoder().decode(stdout);
  const found = code === 1 && said.includes("Run it again");
  if (!found) survived++;
  const where = /^(\d+) sequences/.exec(said)?.[1];
  const crash = code === 0 || found ? "" : ` ${new TextDecoder().decode(stderr).slice(0, 300)}`;
  console.log(
    `${store.padEnd(8)} ${found ? `found in sequence ${where}`.padEnd(24) : "NOT FOUND".padEnd(24)} ${name}${crash}`,
  );
}
