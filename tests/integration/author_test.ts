/**
 * A worker in a repository of its own, by what README tells its author: it imports `mod.ts` and nothing else of this one.
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };

const ROOT = new URL("../../", import.meta.url);
const ORG = "5e716f96-2f9b-45d0-a368-7c34e80565e3";

const PROGRAM = `
import { defineKind, type OpContext, type Parts, runWorker, type SweepStep, type WorkHandler, type WorkItem } from "laneway";
import { z } from "zod";

type Greet = { readonly name: string };
const GREET = defineKind("GREET", { schema: z.object({ name: z.string() }) });

class GreetHandler implements WorkHandler<Greet> {
  readonly kind = GREET;
  handle(_ctx: OpContext, item: WorkItem<Greet>): void {
    console.log("hello " + item.payload.name);
    Deno.kill(Deno.pid, "SIGTERM");
  }
}

const step: SweepStep = { name: "count-greetings", run: () => Promise.resolve({ count: 0, more: false }) };

async function makeOrg({ managers }: Parts): Promise<void> {
  const rctx = managers.tenancy.requestContext({ type: "CLI", version: "greeter@1.0.0" });
  await managers.tenancy.createOrg(rctx, { id: "${ORG}", name: "Greeters" });
}

await runWorker({
  name: "greeter",
  release: "1.0.0",
  kinds: [GREET],
  build: () => ({ handlers: [new GreetHandler()], sweepSteps: [step] }),
  commands: [{
    name: "make-org",
    summary: "Makes an org.",
    async run(call) {
      const open = await call.open();
      try {
        await makeOrg(open.parts);
      } finally {
        await open.close();
      }
      return 0;
    },
  }],
});
`;

async function deno(folder: string, args: readonly string[]): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: folder }).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

Deno.test("a program elsewhere that imports mod.ts alone is a worker: it checks, enqueues, handles and drains", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-author-" });
  try {
    const { imports, unstable, nodeModulesDir } = manifest;
    const laneway = new URL("mod.ts", ROOT).href;
    const config = { unstable, nodeModulesDir, imports: { ...imports, laneway } };
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
    // The same packages to the byte, so that nothing is looked up anew.
    await Deno.copyFile(new URL("deno.lock", ROOT), `${folder}/deno.lock`);
    await Deno.writeTextFile(`${folder}/main.ts`, PROGRAM);
    const steps: readonly (readonly [args: string[], says: RegExp])[] = [
      [["check", "-q", "main.ts"], /^$/],
      [["run", "-A", "main.ts", "make-org", "--store", "sqlite:g.db"], /^(?!.*greeter:)/s],
      [[
        ..."run -A main.ts enqueue --store sqlite:g.db --kind GREET --key k --org".split(" "),
        ORG,
        "--payload",
        '{"name":"Zoë"}',
      ], /inserted/],
      [["run", "-A", "main.ts", "--store", "sqlite:g.db", "--http", "off"], /hello Zoë/],
    ];
    for (const [args, says] of steps) {
      const { code, text } = await deno(folder, args);
      assert.equal(code, 0, `${args.join(" ")}: ${text}`);
      assert.match(text, says, args.join(" "));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
