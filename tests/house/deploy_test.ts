/**
 * Deployment files are what the code says, well-formed by their own tools' rules, and complete.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { format } from "@cdktf/hcl-tools";
import { parse as parseHcl } from "@cdktf/hcl2json";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { parse, parseAllDocuments, parseDocument } from "yaml";
import { envName, FLAG_ENTRIES } from "../../src/runtime/flags.ts";
import { URL_VARIABLES } from "../../src/runtime/database_urls.ts";
import { deployWorkerOf, isDeployed } from "../../tools/deploy/deploy_worker.ts";
import { addComposeWorker } from "../../tools/deploy/compose.ts";
import { envExample } from "../../tools/deploy/env_example.ts";
import { generatedFor } from "../../tools/deploy/generated.ts";
import { addToKustomization } from "../../tools/deploy/kustomization.ts";
import { addToMatrix } from "../../tools/deploy/workflows.ts";
import { read, readProject } from "../../tools/project.ts";
import { readSources, ROOT } from "./source_files.ts";

const { workers } = await readProject(ROOT);
const deployed = workers.filter(isDeployed).map(deployWorkerOf);

function text(path: string): string {
  const found = read(join(ROOT, path));
  assert.ok(found !== null, `there is no ${path}`);
  return found;
}

Deno.test("what is generated is up to date (deno task docs), and every worker's files are what a scaffold would write", () => {
  assert.ok(deployed.length >= 2);
  for (const [path, generated] of generatedFor(deployed)) {
    assert.equal(text(path), generated, `${path}: run deno task docs`);
  }
  assert.equal(text(".env.example"), envExample(text(".env.example")));
  for (const worker of deployed) {
    const kustomization = text("deploy/kubernetes/kustomization.yaml");
    assert.equal(addToKustomization(kustomization, worker.name), kustomization);
    for (const name of ["staging", "production", "release"]) {
      const workflow = text(`.github/workflows/${name}.yml`);
      assert.equal(addToMatrix(workflow, worker.name), workflow, name);
    }
  }
});

Deno.test("Kubernetes' manifests fit their schemas; probes ask what is theirs; nothing runs as root or writes its image", () => {
  const models = { Deployment, Job, PodDisruptionBudget };
  for (const { name } of deployed) {
    const documents = parseAllDocuments(text(`deploy/kubernetes/${name}.yaml`)).map((document) => document.toJS());
    assert.deepEqual(documents.map(({ kind }) => kind), ["Job", "Deployment", "PodDisruptionBudget"]);
    for (const document of documents) new models[document.kind as keyof typeof models](document).validate();
    const [job, deployment, budget] = documents;
    const pod = deployment.spec.template;
    const [container] = pod.spec.containers;
    const paths = ["startupProbe", "livenessProbe", "readinessProbe"].map((probe) => container[probe].httpGet.path);
    assert.deepEqual(paths, ["/livez", "/livez", "/readyz"]);
    for (const { spec } of [job.spec.template, pod]) {
      assert.deepEqual([spec.securityContext.runAsNonRoot, spec.securityContext.runAsUser], [true, 65532]);
      assert.equal(spec.containers[0].securityContext.readOnlyRootFilesystem, true);
    }
    // Migrating pods are not of those that may be away.
    for (const { matchLabels } of [deployment.spec.selector, budget.spec.selector]) {
      const selects = (labels: Record<string, string>) =>
        Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
      assert.deepEqual([selects(pod.metadata.labels), selects(job.spec.template.metadata.labels)], [true, false]);
    }
  }
  const broken = parseAllDocuments(text("deploy/kubernetes/maintenance.yaml"))[1]?.toJS();
  broken.spec.replicas = "two";
  assert.throws(() => new Deployment(broken).validate(), /replicas/);
});

Deno.test("Terraform is formatted as its own formatter writes it, parses, and has no public way in", async () => {
  const files = await readSources("deploy/terraform", [".tf"]);
  assert.ok(files.length >= 10);
  for (const file of files) {
    assert.equal(await format(file.text), file.text, `${file.path}: terraform fmt`);
    await parseHcl(file.path, file.text);
  }
  assert.notEqual(await format("a={\nb=1\n}\n"), "a={\nb=1\n}\n", "the formatter formats");
  const module = files.filter(({ path }) => path.includes("/modules/worker/")).map((file) => file.text).join("\n");
  for (
    const said of [
      /deployment_maximum_percent\s+= 100\b/,
      /assign_public_ip\s+= false\b/,
      // It ends tasks: it must not ask what the database can make fail.
      /healthCheck = \{\s+command\s+= \["CMD", "\/usr\/local\/bin\/worker", "check", "--live"\]/,
      /count = var\.autoscaling_enabled \? 1 : 0/,
      /alarm_actions\s+= \[var\.alarm_topic_arn\]/,
      /retention_in_days = var\.log_retention_days/,
    ]
  ) assert.match(module, said);
  assert.doesNotMatch(module, /load_balancer|aws_lb/);
  // What production runs has a release's tag, and the rule that names it comes before the one that expires commits' images.
  for (const { path, text } of files.filter(({ path }) => /bootstrap\/worker_/.test(path))) {
    const prefixes = [...text.matchAll(/tagPrefixList = \["([a-z]+-)"\]/g)].map(([, prefix]) => prefix);
    assert.deepEqual(prefixes, ["release-", "commit-"], path);
  }
  // Every variable that the module has without a default is given by each instance, and nothing it does not have.
  const variables = await parseHcl("variables.tf", text("deploy/terraform/modules/worker/variables.tf")) as {
    variable: Record<string, readonly Record<string, unknown>[]>;
  };
  const needed = Object.entries(variables.variable).filter(([, [spec]]) => !("default" in (spec ?? {}))).map(([name]) =>
    name
  );
  for (const { path, text } of files.filter(({ path }) => /environments\/\w+\/worker_/.test(path))) {
    const { module } = await parseHcl(path, text) as { module: Record<string, readonly Record<string, unknown>[]> };
    const given = Object.keys(Object.values(module)[0]?.[0] ?? {}).filter((name) => name !== "source");
    assert.deepEqual(needed.filter((name) => !given.includes(name)), [], path);
    assert.deepEqual(given.filter((name) => !(name in variables.variable)), [], path);
  }
});

Deno.test("the workflows are without a finding; production builds nothing, and staging's build can only push", async () => {
  const paths = (await readSources(".github/workflows", [".yml"])).map(({ path }) => path);
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", join(ROOT, "tests/support/lint_workflows.ts"), ...paths],
    cwd: ROOT,
    stderr: "inherit",
  }).output();
  const { findings, wrong } = JSON.parse(new TextDecoder().decode(stdout)) as { findings: string[]; wrong: number };
  assert.deepEqual(findings, []);
  assert.ok(wrong > 0, "the linter finds");
  const workflow = (name: string) => parse(text(`.github/workflows/${name}.yml`));
  const production = JSON.stringify(workflow("production"));
  assert.doesNotMatch(production, /build-push-action|docker build|task compile/);
  assert.match(production, /deployment_record\.ts read/);
  const { release, plan, deploy: promote } = workflow("production").jobs;
  assert.match(JSON.stringify(release), /git tag --points-at HEAD/);
  assert.deepEqual([plan.needs, promote.needs], ["release", "plan"]);
  const { build, deploy } = workflow("staging").jobs;
  assert.match(JSON.stringify(build), /PUSH_ROLE_ARN/);
  assert.doesNotMatch(JSON.stringify(build), /DEPLOY_ROLE_ARN|terraform/);
  assert.doesNotMatch(JSON.stringify(deploy), /PUSH_ROLE_ARN/);
  // What neither is committed nor on a fresh runner comes out of the environment's variables.
  for (const name of ["staging", "production"]) {
    const steps = workflow(name).jobs.deploy.steps as readonly { run?: string; env?: Record<string, string> }[];
    const env = steps.find(({ run }) => run?.includes("deploy.sh"))?.env ?? {};
    assert.deepEqual([env.BACKEND_CONFIG, env.TFVARS], ["${{ vars.BACKEND_CONFIG }}", "${{ vars.TFVARS }}"], name);
  }
  const roles = (await readSources("deploy/terraform/bootstrap", [".tf"])).map(({ text }) => text).join("\n");
  const asked = [...`${production}${JSON.stringify(workflow("staging"))}`.matchAll(/vars\.(\w+)_ROLE_ARN/g)];
  assert.ok(asked.length >= 4);
  for (const [, role = ""] of asked) assert.ok(roles.includes(`resource "aws_iam_role" "${role.toLowerCase()}"`), role);
  const stepsOf = (name: string, job: string) => JSON.stringify(workflow(name).jobs[job].steps);
  assert.match(stepsOf("staging", "build"), /steps\.held\.outputs\.digest == ''/);
  assert.match(stepsOf("production", "deploy"), /promote\.sh.*deploy\.sh/);
  assert.match(JSON.stringify(workflow("check")), /bash \.ci\/run/);
});

/** A compose file without some of its services. */
function without(text: string, names: readonly string[]): string {
  const document = parseDocument(text);
  for (const name of names) assert.ok(document.deleteIn(["services", name]), name);
  return document.toString();
}

Deno.test("the compose file has workers with their migrations, read-only, and Prometheus knows them by their names", () => {
  const compose = text("deploy/compose/docker-compose.yml");
  const { services } = parse(compose, { merge: true });
  // A worker is there once it was made with --container.
  const composed = deployed.filter(({ name }) => services[name] !== undefined);
  assert.ok(composed.length >= 2);
  for (const worker of composed) {
    const { name } = worker;
    assert.equal(addComposeWorker(compose, worker), compose);
    assert.equal(services[name].read_only, true);
    assert.deepEqual(services[name].depends_on, {
      [`${name}-migrate`]: { condition: "service_completed_successfully" },
    });
    assert.ok(services[name].environment.LANEWAY_SYSTEM_DATABASE_URL.includes("app_system"), name);
    assert.deepEqual(services[`${name}-migrate`].command, ["migrate", "up"]);
    assert.equal(services[`${name}-migrate`].environment.LANEWAY_DATABASE_URL, undefined);
    assert.equal(services[`${name}-migrate`].pull_policy, "never", "it is built, not pulled");
    // As it is written is what is made: the file without these services, with them added again.
    const { services: made } = parse(addComposeWorker(without(compose, [name, `${name}-migrate`]), worker), {
      merge: true,
    });
    const fix = `remove its two services, and add them again: deno task new-worker ${name} ITS_KIND --container`;
    for (const one of [name, `${name}-migrate`]) assert.deepEqual(made[one], services[one], `${one}: ${fix}`);
  }
  const built = Object.values(services as Record<string, { build?: unknown; image: string }>)
    .filter(({ build }) => build !== undefined).map(({ image }) => image);
  assert.equal(new Set(built).size, built.length, "builds of one tag that run at once fail");
  const published = Object.values(services as Record<string, { ports?: string[] }>).flatMap(({ ports = [] }) => ports);
  assert.deepEqual(published.filter((port) => !port.startsWith("127.0.0.1:")), []);
  const { scrape_configs: scraped } = parse(text("deploy/prometheus/prometheus.yml"));
  assert.deepEqual(scraped.map(({ job_name }: { job_name: string }) => job_name), deployed.map(({ name }) => name));
});

Deno.test(".env.example has every setting of every worker under its name, and its values serve", () => {
  const example = text(".env.example");
  const named = new Set([...example.matchAll(/^#?(LANEWAY_\w+)=/gm)].map(([, name]) => name));
  const wanted = [
    ...FLAG_ENTRIES.map(([, spec]) => envName(spec)),
    ...URL_VARIABLES.slice(0, 4).map(({ env }) => env),
    ...workers.flatMap(({ env }) => env.filter((name) => !name.endsWith("_FILE") || name === "LANEWAY_ENV_FILE")),
  ];
  const missing = wanted.filter((name) => !named.has(name));
  assert.deepEqual(missing, [], "add these to .env.example: a line NAME=value, or #NAME=, in their worker's block");
  const known = new Set([...wanted, ...URL_VARIABLES.map(({ env }) => env)]);
  assert.deepEqual([...named].filter((name) => !known.has(name ?? "")), []);
  const values = parseEnv(example) as Record<string, string>;
  assert.equal(new URL(values.LANEWAY_DATABASE_URL ?? "").username, "app_runtime");
  const logins = text("deploy/compose/logins.sql");
  for (const value of Object.values(values).filter((one) => one.startsWith("postgres:"))) {
    const { username, password } = new URL(value);
    assert.match(logins, new RegExp(`create role ${username} login .*password '${password}'`));
  }
});
