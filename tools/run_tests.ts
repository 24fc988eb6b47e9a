/**
 * `deno task test`: the whole suite, with a plain closing line. Arguments are passed on to `deno test`. (Not named `test.ts`:
 * the runner would take it for a test and run itself.)
 *
 * @module
 */
import { countTests } from "./junit.ts";

const report = await Deno.makeTempFile({ prefix: "laneway-tests-", suffix: ".xml" });
try {
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--hide-stacktraces", `--junit-path=${report}`, ...Deno.args],
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn().status;
  const { passed, failed, skipped } = countTests(await Deno.readTextFile(report));
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  // A suite in which nothing ran proves nothing.
  Deno.exitCode = code !== 0 ? code : passed === 0 || failed > 0 ? 1 : 0;
} finally {
  await Deno.remove(report).catch(() => {});
}
