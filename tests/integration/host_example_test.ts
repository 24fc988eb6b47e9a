/**
 * The example config of the host runner, run as it stands: only its paths, its PATH and its origin are the test's.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { explainConfig } from "../../src/host/command/explain.ts";
import { loadCommandConfig } from "../../src/host/command/load.ts";
import { commandRig } from "../support/command_rig.ts";
import { git } from "../support/git.ts";

const EXAMPLE = fileURLToPath(new URL("../../workers/host-runner/example/commands.json", import.meta.url));
const PROMPTS = "infra/agent-prompts";

// Writes what it was given, one a line, and fails when it is not logged in.
const AGENT = `#!/bin/sh
printf 'arg %s\\n' "$@"
pwd
git rev-parse --is-shallow-repository
env | sort
`;

async function write(path: string, text: string, mode = 0o644): Promise<void> {
  await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  await Deno.writeTextFile(path, text);
  await Deno.chmod(path, mode);
}

/** A host: a checkout of prompts, a repository to clone, an agent, a key. */
async function makeHost(folder: string): Promise<void> {
  await write(`${folder}/origin/p24/infra/README.md`, "infra\n");
  for (const name of ["worker-issue", "worker-issue-scoped", "review-pr-worker"]) {
    await write(`${folder}/origin/prompts/${PROMPTS}/${name}.md`, `prompt ${name}`);
  }
  await write(`${folder}/origin/prompts/infra/repo-contexts/p24/infra.md`, "context");
  for (const name of ["p24/infra", "prompts"]) {
    await git(`${folder}/origin/${name}`, "init", "--quiet");
    await git(`${folder}/origin/${name}`, "add", "-A");
    await git(`${folder}/origin/${name}`, "commit", "--quiet", "-m", "one");
  }
  await git(folder, "clone", "--quiet", `file://${folder}/origin/prompts`, "checkout");
  await write(`${folder}/bin/claude`, AGENT, 0o755);
  await write(`${folder}/agent.key`, "narrow-key\n", 0o600);
}

async function exampleFor(folder: string): Promise<Record<string, unknown>> {
  const text = (await Deno.readTextFile(EXAMPLE))
    .replaceAll("/usr/local/bin:", `${folder}/bin:/usr/local/bin:`)
    .replaceAll("https://github.com/{payload.repo}.git", `file://${folder}/origin/{payload.repo}`)
    .replaceAll("/etc/laneway/agent.key", `${folder}/agent.key`)
    .replaceAll("/var/lib/laneway-host-runner/p24-infra", `${folder}/checkout`)
    .replaceAll('{\n      "fromEnv": "HOME"\n    }', JSON.stringify(`${folder}/home`));
  return JSON.parse(text);
}

Deno.test("the example is a config, and check explains each of its kinds", async () => {
  const config = await loadCommandConfig(EXAMPLE);
  assert.deepEqual(Object.keys(config.kinds), ["DEV_ISSUE", "CONTINUE_ISSUE", "REVIEW_PLAN", "REVIEW_PR"]);
  const said = explainConfig(config).join("\n");
  assert.match(said, /DEV_ISSUE: claude with 5 arguments, at most 7200 s, nice 10, stdin none/);
  assert.match(said, /exit 65: final; exit 75: defer 60 s; any other exit code: retry/);
  assert.match(said, /time limit passed: retry$/m, "what a config cannot change is in the README alone");
});

Deno.test("the example runs its four kinds: prompt, clone, arguments and environment are the seed's", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-example-" }));
  try {
    await makeHost(folder);
    const { kinds, env, folders } = await exampleFor(folder);
    const rig = await commandRig(kinds as Record<string, unknown>, { env, folders });
    try {
      const payload = { issue: 6094, repo: "p24/infra", pr_number: 17 };
      const prompts: readonly (readonly [kind: string, more: Record<string, unknown>, prompt: string])[] = [
        ["DEV_ISSUE", {}, "worker-issue"],
        ["CONTINUE_ISSUE", { role: "dev-coder" }, "worker-issue-scoped"],
        ["REVIEW_PLAN", { model: "sonnet" }, "worker-issue"],
        ["REVIEW_PR", { role: "dev-coder" }, "review-pr-worker"],
      ];
      for (const [kind, more, prompt] of prompts) {
        const { attempt, error } = await rig.run(kind, { ...payload, ...more });
        assert.equal(error, null, `${kind}: ${error?.message}`);
        const lines = attempt.stdoutTail.split("\n");
        const args = lines.filter((line) => line.startsWith("arg ")).map((line) => line.slice(4));
        const model = "model" in more ? ["--model=sonnet"] : [];
        assert.deepEqual(args, [
          "--dangerously-skip-permissions",
          "--strict-mcp-config",
          ...model,
          "-p",
          `prompt ${prompt}`,
        ]);
        assert.match(lines[args.length] ?? "", /\/worker-6094-p24-infra\.[0-9a-f]{8}\/work$/);
        assert.equal(lines[args.length + 1], "true", "a shallow clone");
        const seen = Object.fromEntries(lines.slice(args.length + 2, -1).map((line) => line.split(/=(.*)/s)));
        assert.deepEqual(picked(seen), {
          CLAUDE_WORKER_ID: "rig-host-que-w1",
          CLAUDE_WORKER_HOST: "rig-host",
          SERVER_NODE: "rig-host",
          CLAUDE_SERVER_LABEL: "rig-host",
          QUEUE_ROW_ID: attempt.itemId,
          SOURCE_TABLE: "queue.work_items",
          QUEUE_JOB_TYPE: kind.toLowerCase().replace("_", "-"),
          CLAUDE_JOB_WEIGHT: "light",
          REPO_CONTEXT_FILE: `${folder}/checkout/infra/repo-contexts/p24/infra.md`,
          SUPA_MCP_AVAILABLE: "0",
          SUPA_HB_URL: "https://project.supabase.co",
          SUPA_HB_KEY: "narrow-key",
          TELEGRAM_CHAT_ID: "",
          ...("role" in more ? { CLAUDE_ROLE: "dev-coder" } : {}),
          ...("model" in more ? { CLAUDE_MODEL: "sonnet" } : {}),
          ...(kind === "REVIEW_PR" ? { PR_NUMBER: "17" } : {}),
        });
      }
    } finally {
      await rig.dispose();
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** The variables of the seed's table. */
function picked(env: Readonly<Record<string, string>>): Record<string, string> {
  const names = /^(?:CLAUDE_|SERVER_NODE|QUEUE_|SOURCE_TABLE|REPO_CONTEXT|PR_NUMBER|SUPA_|TELEGRAM_)/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.test(name)));
}
