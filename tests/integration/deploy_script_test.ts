/**
 * `deploy/terraform/deploy.sh` with stand-ins for the programs it calls, each of which writes down how it was called.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../house/source_files.ts";

const COMMIT = "a".repeat(40);
const DIGESTS = { maintenance: `sha256:${"1".repeat(64)}`, "shipment-notifier": `sha256:${"2".repeat(64)}` };

/** What a stand-in says to a call that begins so. */
type Answers = Readonly<Record<string, string>>;

const TERRAFORM: Answers = {
  "output -json": '{"task_definition_arn":"arn:migrate","network":{"awsvpcConfiguration":{"subnets":["s"]}}}',
  "output -raw": "arn:new",
};
const AWS: Answers = {
  "ecs run-task": "arn:task",
  "ecs describe-tasks": "0",
  "ecs describe-services": "arn:new",
};

interface Ran {
  readonly code: number;
  readonly errors: string;
  readonly calls: readonly string[];
}

/** Runs a script in a copy of its folder. */
async function deploy(
  { terraform = TERRAFORM, aws = AWS, environment = "staging", script = "deploy.sh" }: {
    readonly terraform?: Answers;
    readonly aws?: Answers;
    readonly environment?: string;
    readonly script?: string;
  },
): Promise<Ran> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-deploy-" });
  try {
    await new Deno.Command("cp", { args: ["-r", join(ROOT, "deploy"), folder] }).output();
    const bin = join(folder, "bin");
    await Deno.mkdir(bin);
    const log = join(folder, "calls");
    const stand = async (name: string, answers: Answers, then = "") => {
      const cases = Object.entries(answers).map(([call, said]) =>
        `'${call}'*) printf '%s\\n' "${said.replaceAll('"', '\\"')}";;`
      ).join(" ");
      const text = `#!/bin/sh\nprintf '%s\\n' "${name} $*" >> '${log}'\ncase "$*" in ${cases} esac\n${then}\n`
        .replaceAll("FOLDER", folder);
      await Deno.writeTextFile(join(bin, name), text, { mode: 0o755 });
    };
    await stand("terraform", terraform);
    await stand("aws", aws);
    // A tag stands once it was written.
    await stand("docker", {}, `touch '${folder}/tagged'`);
    await stand("deno", { "run -A": JSON.stringify(DIGESTS) });
    const { code, stderr } = await new Deno.Command("bash", {
      args: [join(folder, "deploy/terraform", script)],
      clearEnv: true,
      env: {
        PATH: `${bin}:/usr/bin:/bin`,
        COMMIT,
        ENVIRONMENT: environment,
        BACKEND_CONFIG: 'key = "k"',
        FROM_REGISTRY: "staging.example",
        TO_REGISTRY: "production.example",
      },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).output();
    const calls = (await Deno.readTextFile(log).catch(() => "")).trim().split("\n");
    return { code, errors: new TextDecoder().decode(stderr), calls };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function hasJq(): Promise<boolean> {
  const found = await new Deno.Command("jq", { args: ["--version"], stdout: "null" }).output().then(
    () => true,
    () => false,
  );
  if (!found) console.log("NOT RUN: there is no jq on this machine");
  return found;
}

Deno.test("a deployment reads the record, migrates every worker to the end, and then changes the services", async () => {
  if (!await hasJq()) return;
  for (const environment of ["staging", "production"]) {
    const { code, errors, calls } = await deploy({ environment });
    assert.equal(code, 0, errors);
    const at = (call: RegExp) => calls.findIndex((one) => call.test(one));
    assert.match(calls[0] ?? "", new RegExp(`read --commit ${COMMIT} --workers maintenance,shipment-notifier$`));
    const order = [
      at(/^terraform init -backend-config=backend\.hcl$/),
      at(/^terraform apply -auto-approve .*-target=module\.maintenance\.\S+ .*-target=module\.shipment_notifier\./),
      at(/^aws ecs run-task .*"subnets":\["s"\].* arn:migrate/),
      at(/^aws ecs describe-tasks/),
      at(/^terraform apply -auto-approve$/),
      at(/^aws ecs wait services-stable .*--services maintenance$/),
    ];
    assert.ok(order.every((index, i) => index > (order[i - 1] ?? 0)), `${order}: ${calls.join("\n")}`);
    assert.equal(calls.filter((call) => call.startsWith("aws ecs run-task")).length, 2);
  }
});

Deno.test("a migration that fails leaves the services as they are", async () => {
  if (!await hasJq()) return;
  const { code, errors, calls } = await deploy({ aws: { ...AWS, "ecs describe-tasks": "1" } });
  assert.equal(code, 1);
  assert.match(errors, /the migrations of maintenance ended with 1; the services were not changed/);
  assert.ok(!calls.includes("terraform apply -auto-approve"));
});

Deno.test("a deployment that the orchestrator rolled back is no success, although its services are stable", async () => {
  if (!await hasJq()) return;
  const { code, errors } = await deploy({ aws: { ...AWS, "ecs describe-services": "arn:before" } });
  assert.equal(code, 1);
  assert.match(errors, /the deployment of maintenance was rolled back: it runs arn:before, not arn:new/);
});

Deno.test("images are promoted by their digests under a release's tag, once, and never as another one", async () => {
  if (!await hasJq()) return;
  const script = "promote.sh";
  const tagged = (yes: string, no: string) => `$(test -e FOLDER/tagged && echo ${yes} || echo ${no})`;
  // Of two workers one was promoted before.
  const held = {
    "ecr describe-images --repository-name laneway/maintenance": DIGESTS.maintenance,
    "ecr describe-images": tagged(DIGESTS["shipment-notifier"], "None"),
  };
  const { code, errors, calls } = await deploy({ aws: held, script });
  assert.equal(code, 0, errors);
  assert.deepEqual(calls.filter((call) => call.startsWith("docker")), [
    `docker buildx imagetools create --tag production.example/laneway/shipment-notifier:release-${COMMIT} ` +
    `staging.example/laneway/shipment-notifier@${DIGESTS["shipment-notifier"]}`,
  ]);
  const other = await deploy({ aws: { ...held, "ecr describe-images": "sha256:other" }, script });
  assert.equal(other.code, 1);
  assert.match(other.errors, /release-a+ is sha256:other, not sha256:2+ as recorded; nothing was deployed/);
});

Deno.test("without a commit or an environment nothing is called", async () => {
  const { code, calls } = await deploy({ environment: "" });
  assert.notEqual(code, 0);
  assert.deepEqual(calls, [""]);
});
