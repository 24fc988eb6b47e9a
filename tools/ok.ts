/**
 * `deno task ok`: the one gate. Runs each step, stops at the first that fails, says which it was.
 *
 * @module
 */
const STEPS: readonly { readonly name: string; readonly args: readonly string[] }[] = [
  { name: "format", args: ["fmt", "--check"] },
  { name: "lint", args: ["lint"] },
  { name: "types", args: ["task", "check"] },
  { name: "docs", args: ["doc", "--lint", "mod.ts"] },
  { name: "generated", args: ["task", "docs", "--check"] },
  { name: "tests", args: ["task", "test", ...Deno.args] },
];

for (const { name, args } of STEPS) {
  const startedMs = performance.now();
  console.log(`== ${name}: deno ${args.join(" ")}`);
  const { code } = await new Deno.Command(Deno.execPath(), { args: [...args], stdin: "null" }).spawn().status;
  if (code !== 0) {
    console.log(`== ${name} failed`);
    Deno.exit(code);
  }
  console.log(`== ${name} ok (${((performance.now() - startedMs) / 1_000).toFixed(1)} s)`);
}
