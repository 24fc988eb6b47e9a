/**
 * Makes workers as a user would, in a copy of this repository and in a project of its own, and holds that each is whole:
 * formatted, linted, checked, tested, compiled, and doing its work.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runBinary, startBinary } from "../support/binary.ts";
import { ROOT } from "../house/source_files.ts";
import { waitFor } from "../support/wait_for.ts";

const ORG = "5e716f96-2f9b-45d0-a368-7c34e80565e3";

interface Said {
  readonly code: number;
  readonly text: string;
}

async function deno(folder: string, args: readonly string[]): Promise<Said> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: folder,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  return { code, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

async function passes(folder: string, ...args: string[]): Promise<string> {
  const { code, text } = await deno(folder, args);
  assert.equal(code, 0, `deno ${args.join(" ")}\n${text}`);
  return text;
}

/** This tree as it stands, without what is built. */
async function copyTree(to: string): Promise<void> {
  const { success, stdout } = await new Deno.Command("git", {
    args: ["ls-files", "-co", "--exclude-standard", "-z"],
    cwd: ROOT,
  }).output();
  assert.ok(success, "this test needs git");
  for (const path of new TextDecoder().decode(stdout).split("\0").filter((one) => one !== "")) {
    await Deno.mkdir(join(to, path, ".."), { recursive: true });
    await Deno.copyFile(join(ROOT, path), join(to, path)).catch((error) => {
      // Deleted, but not yet for git.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }
}

/** A project's files with their texts. */
async function snapshot(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (name === "dist" || name === "node_modules") continue;
    if (isDirectory) { for (const [inner, text] of await snapshot(path)) found.set(join(name, inner), text); }
    else found.set(name, await Deno.readTextFile(path));
  }
  return found;
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-scaffold-" }));
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Compiles a worker and lets it do one record's work on a file. Says so where no runtime base can be had. */
async function works(
  folder: string,
  { worker, create, done, lane }: { worker: string; create: string; done: string; lane: string },
): Promise<void> {
  const { code, text } = await deno(folder, ["task", `compile:${worker}`]);
  if (code !== 0 && text.includes("runtime base")) {
    return void console.log(`NOT RUN: ${worker}'s binary: ${text.trim()}`);
  }
  assert.equal(code, 0, text);
  const binary = join(folder, "dist", worker);
  const store = `sqlite:${join(folder, `${worker}.db`)}`;
  const line = { orgId: ORG, orgName: "Łódź", id: crypto.randomUUID(), reference: "№ 1" };
  await Deno.writeTextFile(join(folder, "lines.ndjson"), `${JSON.stringify(line)}\n`);
  const args = [create, "--create-orgs", "--file", join(folder, "lines.ndjson"), "--store", store];
  for (const says of ["1 created, 0 already there", "0 created, 1 already there"]) {
    const created = await runBinary(binary, args);
    assert.equal(created.code, 0, created.errors);
    assert.ok(created.out.includes(says), created.out);
  }
  const running = startBinary(binary, ["--store", store, "--http", "off"]);
  try {
    await waitFor(`${worker} to do its work`, () => running.log().includes(done), { timeoutMs: 20_000 });
    assert.match(running.log(), new RegExp(`"lane":"${lane}"`));
  } finally {
    running.kill("SIGTERM");
  }
  assert.equal((await running.ended).code, 0, running.log());
}

const INSIDE = [
  {
    args: ["invoice-mailer", "MAIL_INVOICE"],
    create: "create-invoices",
    done: "mail_invoice.performed",
    lane: "default",
  },
  {
    args: ["order-shipper", "SHIP_ORDER_LINE", "--lane", "eu-west"],
    create: "create-order-lines",
    done: "ship_order_line.performed",
    lane: "eu-west",
  },
  {
    args: ["reindexer", "REINDEX", "--lane", "low", "--container"],
    create: "create-reindex-jobs",
    done: "reindex.performed",
    lane: "low",
  },
] as const;

Deno.test("workers made in this repository are formatted, linted, checked, tested, compiled, and do their work", async () => {
  await inFolder(async (folder) => {
    await copyTree(folder);
    for (const { args } of INSIDE) await passes(folder, "task", "new-worker", ...args);
    const made = await snapshot(folder);
    for (const { args } of INSIDE) {
      assert.match(await passes(folder, "task", "new-worker", ...args), /All of it stands; nothing was changed/);
    }
    assert.deepEqual(await snapshot(folder), made);
    // That these are right is held by the copy's own tests/house/deploy_test.ts, below.
    const compose = made.get("deploy/compose/docker-compose.yml") ?? "";
    for (const { args: [worker, kind, ...options] } of INSIDE) {
      for (const path of ["deploy/kubernetes/W.yaml", `workers/W/tests/loop_test.ts`]) {
        assert.ok(made.has(path.replace("W", worker)), `${worker}: ${path}`);
      }
      for (const path of ["staging", "production", "release"].map((name) => `.github/workflows/${name}.yml`)) {
        assert.ok(made.get(path)?.includes(`- ${worker}\n`), `${worker}: ${path}`);
      }
      assert.ok(made.get("src/work/README.md")?.includes(`| \`${kind}\` |`));
      assert.equal(compose.includes(`\n  ${worker}:\n`), (options as readonly string[]).includes("--container"));
    }
    // A second worker of a kind whose worker has a secret: it is wired into what is deployed of both.
    await passes(folder, "task", "new-worker", "notifier-bulk", "NOTIFY_SHIPMENT", "--lane", "bulk", "--container");
    const manifest = await Deno.readTextFile(join(folder, "deploy/kubernetes/notifier-bulk.yaml"));
    assert.match(manifest, /LANEWAY_WEBHOOK_SECRET_FILE/);
    // A worker's owner gives it a secret: one command says so in what is deployed of it.
    const settings = join(folder, "workers/invoice-mailer/settings.ts");
    const [own, secret] = ['"LANEWAY_MAIL_INVOICE_TIMEOUT"', '"LANEWAY_SMTP_KEY", "LANEWAY_SMTP_KEY_FILE"'];
    await Deno.writeTextFile(settings, (await Deno.readTextFile(settings)).replace(`[${own}]`, `[${own}, ${secret}]`));
    const example = join(folder, ".env.example");
    const block = "# invoice-mailer\n";
    await Deno.writeTextFile(
      example,
      (await Deno.readTextFile(example)).replace(block, `${block}#LANEWAY_SMTP_KEY=\n`),
    );
    await passes(folder, "task", "docs");
    assert.match(
      await Deno.readTextFile(join(folder, "deploy/kubernetes/invoice-mailer.yaml")),
      /\/run\/secrets\/smtp-key/,
    );
    await passes(folder, "fmt", "--check");
    await passes(folder, "lint", "-q");
    await passes(folder, "check", "-q", "workers");
    await passes(folder, "test", "-A", "-q", "tests/house", ...INSIDE.map(({ args: [worker] }) => `workers/${worker}`));
    const onPostgres = await passes(folder, "test", "-A", "tests/integration/scaffold_template_test.ts");
    for (const { args: [worker] } of INSIDE) {
      assert.match(onPostgres, new RegExp(`on Postgres \\(${worker}\\) \\.\\.\\. ok`));
    }
    for (const { args: [worker], create, done, lane } of INSIDE) await works(folder, { worker, create, done, lane });
  });
});

Deno.test("a worker made outside this repository is as whole, and a second one of its kind is its process alone", async () => {
  await inFolder(async (folder) => {
    const tool = join(ROOT, "tools/new_worker.ts");
    await passes(folder, "run", "-A", tool, "parcel-tracker", "TRACK_PARCEL", "--lane", "eu");
    const second = await passes(folder, "run", "-A", tool, "parcel-bulk", "TRACK_PARCEL", "--lane", "bulk");
    assert.match(second, /the kind of the parcel-tracker/);
    // A kind whose second word names no record: who serves it too needs none.
    await passes(folder, "run", "-A", tool, "texter", "SEND_TEXT", "--record", "quarterly_text_message_audit");
    assert.match(await passes(folder, "run", "-A", tool, "texter-bulk", "SEND_TEXT"), /the kind of the texter/);
    const made = await snapshot(join(folder, "workers"));
    // What the formatter leaves alone: comments, and prose outside of code and tables.
    const long = [...made].flatMap(([path, text]) => text.split("\n").map((line) => ({ path, line })))
      .filter(({ path, line }) =>
        line.length > 120 && (/\.ts$/.test(path) ? /^\s*(?:\/?\*|\/\/)/ : /^[A-Z]/).test(line)
      );
    assert.deepEqual(long, []);
    assert.match(await passes(folder, "task", "ok"), /26 passed/);
    await works(folder, {
      worker: "parcel-tracker",
      create: "create-parcels",
      done: "track_parcel.performed",
      lane: "eu",
    });
  });
});

Deno.test("what cannot be made is refused before anything is written, saying what to do", async () => {
  await inFolder(async (folder) => {
    const tool = join(ROOT, "tools/new_worker.ts");
    const refusals: readonly (readonly [args: string, says: RegExp])[] = [
      ["", /without <worker-name>: give it as an argument/],
      ["invoice-mailer", /without <WORK_KIND>: give it as an argument/],
      ["InvoiceMailer MAIL_INVOICE", /worker name "InvoiceMailer": it must be/],
      ["invoice-mailer mail_invoice", /work kind "mail_invoice": it must be/],
      ["invoice-mailer MAIL_INVOICE more", /Cannot use more/],
      ["invoice-mailer MAIL_INVOICE --lane a/b", /--lane "a\/b": it must be/],
      ["invoice-mailer MAIL_INVOICE --colour", /--colour/],
      ["invoice-mailer MAIL_ORG", /--record mail_request/],
      ["invoice-mailer MAIL_INVOICES", /--record invoice, or --record invoices/],
    ];
    for (const [args, says] of refusals) {
      const { code, text } = await deno(folder, ["run", "-A", tool, ...args.split(" ").filter((arg) => arg !== "")]);
      assert.equal(code, 2, text);
      assert.match(text, says);
    }
    assert.equal((await snapshot(folder)).size, 0);
    await passes(folder, "run", "-A", tool, "invoice-mailer", "MAIL_INVOICE", "--dry-run");
    assert.equal((await snapshot(folder)).size, 0);
    await passes(folder, "run", "-A", tool, "invoice-mailer", "MAIL_INVOICE");
    const made = await snapshot(folder);
    for (
      const [args, says] of [
        ["invoice-mailer SEND_INVOICE", /invoice-mailer: it stands, for MAIL_INVOICE/],
        [
          "invoice-mailer MAIL_INVOICE --lane post",
          /it stands, on lane default; choose another name, or change the lane/,
        ],
        ["invoice-mailer MAIL_INVOICE --record bill", /it stands, with invoices for its records, not bills/],
        ["invoice-sender SEND_INVOICE", /schema invoices is that of the invoice-mailer.*--record send_request/],
      ] as const
    ) {
      const { code, text } = await deno(folder, ["run", "-A", tool, ...args.split(" ")]);
      assert.equal(code, 2, text);
      assert.match(text, says);
    }
    assert.deepEqual(await snapshot(folder), made);
  });
});

Deno.test("a folder with a blank in its name serves; one of Laneway's own, or with a deno.jsonc, is refused", async () => {
  await inFolder(async (folder) => {
    const [laneway, own] = [join(folder, "la ne"), join(folder, "my own")];
    for (const path of [laneway, own]) await Deno.mkdir(path);
    await copyTree(laneway);
    const tool = join(laneway, "tools/new_worker.ts");
    assert.match(await passes(laneway, "task", "new-worker", "a-b", "SORT_BOX", "--lane", "eu"), /creates +deploy/);
    assert.match(await passes(laneway, "task", "new-worker", "a-b", "SORT_BOX"), /on lane eu[^]*nothing was changed/);
    await passes(laneway, "task", "docs", "--check");
    await passes(laneway, "test", "-A", "-q", "tests/house");
    await passes(own, "run", "-A", tool, "a-b", "SORT_BOX");
    await passes(own, "check", "-q", "workers");
    const inside = await deno(join(laneway, "workers"), ["run", "-A", tool, "c-d", "PACK_BOX"]);
    assert.match(`${inside.code}${inside.text}`, /^1new-worker: Cannot work in .*: it is a folder of Laneway's own/);
    await Deno.rename(join(own, "deno.json"), join(own, "deno.jsonc"));
    const jsonc = await deno(own, ["run", "-A", tool, "c-d", "PACK_BOX"]);
    assert.match(`${jsonc.code}${jsonc.text}`, /^1new-worker: Cannot work in .*: its settings are in deno\.jsonc/);
  });
});

/** What is typed once a question was asked for the nth time. */
type Answer = readonly [question: string, typed: string];

/** Runs the tool on a terminal that `script` makes. Null where there is no `script`. */
async function onTerminal(folder: string, args: string, answers: readonly Answer[]): Promise<Said | null> {
  const command = `'${Deno.execPath()}' run -A '${join(ROOT, "tools/new_worker.ts")}' ${args}`;
  try {
    const child = new Deno.Command("script", {
      args: ["-qec", command, "/dev/null"],
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = child.stdin.getWriter();
    let [text, seen] = ["", 0];
    const reading = (async () => {
      for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
    })();
    for (const [question, typed] of answers) {
      const at = await waitFor(`"${question}" in ${text}`, () => {
        const found = text.indexOf(question, seen);
        return found === -1 ? undefined : found + question.length;
      }, { timeoutMs: 20_000 });
      seen = at;
      await writer.write(new TextEncoder().encode(`${typed}\r`));
      // The line editor shows the question anew with what was typed.
      await waitFor(`"${typed}" to be taken`, () => text.indexOf("[?2004l", seen) !== -1);
      seen = text.indexOf("[?2004l", seen);
    }
    const { code } = await child.status;
    await writer.close().catch(() => {});
    await reading;
    return { code, text };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("NOT RUN: there is no script(1) on this machine to make a terminal");
    return null;
  }
}

Deno.test("on a terminal it asks for what is missing until it fits, shows what it will do, and writes once told to", async () => {
  await inFolder(async (folder) => {
    const refused = await onTerminal(folder, "", [
      ["Worker name", "Invoice"],
      ["Worker name", "invoice-mailer"],
      ["Work kind", "MAIL_INVOICE"],
      ["Go ahead?", "n"],
    ]);
    if (refused === null) return;
    assert.match(
      refused.text,
      /worker name "Invoice": it must be[^]*creates\s+workers\/invoice-mailer\/main\.ts[^]*Nothing was written/,
    );
    assert.equal(refused.code, 1);
    assert.equal((await snapshot(folder)).size, 0);
    const made = await onTerminal(folder, "invoice-mailer", [["Work kind", "MAIL_INVOICE"], ["Go ahead?", "y"]]);
    assert.equal(made?.code, 0, made?.text);
    assert.ok((await snapshot(folder)).has("workers/invoice-mailer/main.ts"));
  });
});
