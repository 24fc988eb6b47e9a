/**
 * The image without a container engine: its file system is laid out from the built binary and the libraries of glibc and
 * libgcc alone, mounted read-only with `/proc`, and run with `chroot` as the image's user against a real Postgres.
 */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { validate } from "dockerfile-utils";
import { newId } from "../../src/core/ids.ts";
import { ROOT } from "../house/source_files.ts";
import { buildBinary, runBinary, type RunningBinary, startBinary } from "../support/binary.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { Database } from "../../src/db/database.ts";

const UID = 65532;
const WORKER = "/usr/local/bin/worker";

/** What the image's base brings of glibc and libgcc; nothing else of it is laid out. */
const LIBRARIES = /\/(?:ld-linux-\S+|libc|libdl|libgcc_s|libm|libpthread|librt)\.so\.\d+$/;

/** Lays the image out under `folder`, with a secret as an orchestrator mounts one. Returns what it took from this machine. */
async function layOut(folder: string, binary: string, secrets: Readonly<Record<string, string>>): Promise<string[]> {
  const { stdout } = await new Deno.Command("ldd", { args: [binary] }).output();
  const needed = [...new TextDecoder().decode(stdout).matchAll(/(\/\S+\.so\.\d+)/g)].map(([, path = ""]) => path);
  for (const [from, to] of [[binary, WORKER], ...needed.map((path) => [path, path])] as [string, string][]) {
    await Deno.mkdir(join(folder, dirname(to)), { recursive: true });
    await Deno.copyFile(await Deno.realPath(from), join(folder, to));
    await Deno.chmod(join(folder, to), 0o755);
  }
  await Deno.mkdir(join(folder, "proc"));
  await Deno.mkdir(join(folder, "run/secrets"), { recursive: true });
  // As Kubernetes does: each key a link into a folder that is swapped when the secret changes. Docker's is the file itself.
  const secret = join(folder, "run/secrets");
  await Deno.mkdir(join(secret, "..2026_01"));
  await Deno.symlink("..2026_01", join(secret, "..data"));
  for (const [name, text] of Object.entries(secrets)) {
    await Deno.writeTextFile(join(secret, "..2026_01", name), `${text}\n`);
    await Deno.chmod(join(secret, "..2026_01", name), 0o444);
    await Deno.symlink(`..data/${name}`, join(secret, name));
  }
  await Deno.chmod(folder, 0o755);
  return needed;
}

/** A command line that runs the worker in the layout. Its mounts are a namespace's own and go with it. */
function inImage(folder: string, args: readonly string[]): string[] {
  const mounts = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount -t proc proc "$0/proc" && ' +
    `exec chroot --userspec=${UID}:${UID} "$0" ${WORKER} "$@"`;
  return ["--mount", "--propagation", "private", "sh", "-c", mounts, folder, ...args];
}

async function canUnshare(): Promise<boolean> {
  if (Deno.uid() !== 0) return false;
  const probe = new Deno.Command("unshare", {
    args: ["--mount", "--propagation", "private", "mount", "-t", "proc", "proc", "/proc"],
    stdout: "null",
    stderr: "null",
  });
  return await probe.output().then(({ success }) => success, () => false);
}

async function treeOf(folder: string): Promise<string[]> {
  const { stdout } = await new Deno.Command("find", { args: [folder, "-printf", "%P %s %T@\n"] }).output();
  return new TextDecoder().decode(stdout).split("\n").sort();
}

Deno.test("the image runs on glibc and libgcc alone, read-only, as its user, and does its work against Postgres", async () => {
  if (!await canUnshare()) return void console.log("NOT RUN: laying out the image needs root, and a mount namespace");
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-image-" }));
  const db = await createTestDatabase(CHAINS);
  try {
    const binary = await buildBinary("maintenance", folder, { profile: "container" });
    if (binary === null) return;
    const root = join(folder, "image");
    await Deno.mkdir(root);
    const secrets = { database_url: db.url("runtime"), system_database_url: db.url("system") };
    const needed = await layOut(root, binary, secrets);
    assert.deepEqual(needed.filter((path) => !LIBRARIES.test(path)), []);
    await servesAndDrains(root, db.databases.core);
  } finally {
    await db.drop();
    await Deno.remove(folder, { recursive: true });
  }
});

async function servesAndDrains(root: string, database: Pick<Database, "system">): Promise<void> {
  const port = await freePort();
  const env = {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    LANEWAY_DATABASE_URL_FILE: "/run/secrets/database_url",
    LANEWAY_SYSTEM_DATABASE_URL_FILE: "/run/secrets/system_database_url",
    LANEWAY_HTTP_PORT: String(port),
    LANEWAY_HTTP_HOST: "0.0.0.0",
    LANEWAY_LOG_FORMAT: "json",
  };
  const before = await treeOf(root);
  const checked = await runBinary("unshare", inImage(root, ["check"]), env);
  assert.equal(checked.code, 0, checked.out + checked.errors);
  const sick = await runBinary("unshare", inImage(root, ["check", "--health"]), env);
  assert.equal(sick.code, 1, "nobody serves yet");
  const running: RunningBinary = startBinary("unshare", inImage(root, []), env);
  try {
    await waitFor("the worker to start", () => running.log().includes('"worker.started"'), { timeoutMs: 20_000 });
    await worksAsItsUser(root, env, { running, database });
  } finally {
    running.kill("SIGTERM");
  }
  const { code } = await running.ended;
  assert.equal(code, 0, running.log());
  assert.match(running.log(), /"worker\.drained"/);
  assert.deepEqual(await treeOf(root), before);
}

async function worksAsItsUser(
  root: string,
  env: Readonly<Record<string, string>>,
  { running, database }: { readonly running: RunningBinary; readonly database: Pick<Database, "system"> },
): Promise<void> {
  // What the image's HEALTHCHECK runs, and what ECS asks.
  for (const asked of ["--health", "--live"]) {
    await waitFor(
      `check ${asked}`,
      async () => (await runBinary("unshare", inImage(root, ["check", asked]), env)).code === 0,
    );
  }
  const pid = Number(/"worker":"maintenance@[^"]*\/(\d+)"/.exec(running.log())?.[1]);
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  assert.match(status, new RegExp(`^Uid:\\s+${UID}\\s+${UID}\\s+${UID}\\s+${UID}$`, "m"));
  assert.match(await Deno.readTextFile(`/proc/${pid}/mounts`), /^\S+ \/ \S+ ro[, ]/m);
  const org = newId();
  await database.system("insert into core.orgs (id, name, created_at) values ($1::uuid, 'Łódź', now())", [org]);
  const args = ["enqueue", "--org", org, "--kind", "NOOP", "--key", "k", "--payload", "{}"];
  const enqueued = await runBinary("unshare", inImage(root, args), env);
  assert.equal(enqueued.code, 0, enqueued.out + enqueued.errors);
  await waitFor("the item to be done", async () => {
    const rows = await database.system("select 1 from queue.work_history where org_id = $1::uuid", [org]);
    return rows.length === 1;
  });
}

async function freePort(): Promise<number> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return await Promise.resolve(port);
}

Deno.test("the Dockerfile is without a finding, and its image is what it should be", async () => {
  const text = await Deno.readTextFile(join(ROOT, "Dockerfile"));
  assert.deepEqual(validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`), []);
  const stages = text.split(/^FROM /m);
  const last = stages.at(-1) ?? "";
  assert.match(last, /^gcr\.io\/distroless\/cc-debian12:nonroot@sha256:[0-9a-f]{64}\n/);
  assert.match(last, /^USER 65532:65532$/m);
  assert.deepEqual([...last.matchAll(/^EXPOSE (.*)$/gm)].map(([, ports]) => ports), ["9464"]);
  assert.match(last, /^STOPSIGNAL SIGTERM$/m);
  assert.match(last, /^HEALTHCHECK .*CMD \["\/usr\/local\/bin\/worker", "check", "--health"\]$/m);
  assert.match(text, /--profile container/);
});
