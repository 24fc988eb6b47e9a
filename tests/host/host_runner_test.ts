/**
 * The host runner as a program, against a real PostgREST: from an item enqueued to its command's end, its kill switch, its
 * cap, and its check.
 */
import assert from "node:assert/strict";
import { EMPTY_UUID } from "../../src/core/ids.ts";
import type { HostRow, HostWindow } from "../../src/host/types.ts";
import { definition } from "../../workers/host-runner/worker.ts";
import { type CliResult, runCli, TestStop } from "../support/cli.ts";
import { hasCurl } from "../support/has_curl.ts";
import { type HostWorld, KIND, withHosts } from "../support/host_world.ts";
import { noticeServer } from "../support/notice_server.ts";
import { waitFor } from "../support/wait_for.ts";

const POLL_MS = 200;
const SERVE = ["serve", "--http-port", "0", "--poll", `${POLL_MS}ms`, "--log-level", "error", "--drain-grace", "5s"];
const ALWAYS: HostWindow = {
  name: "always",
  timeZone: "UTC",
  days: [],
  from: "00:00",
  to: "00:00",
  maxInFlight: 10,
  weights: null,
};

/** A machine: a folder with the config, the key and what its commands write. */
interface Machine {
  readonly folder: string;
  readonly env: Record<string, string>;
  /** Lines that commands wrote into `out`. */
  out(): Promise<string[]>;
}

async function withMachine(
  { world, host = "wsl1", script = 'echo "$LANEWAY_ITEM_ID" >>"$OUT"', row = {} }: {
    readonly world: HostWorld;
    readonly host?: string;
    readonly script?: string;
    readonly row?: Partial<HostRow>;
  },
  use: (machine: Machine) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-host-" });
  try {
    await world.host(host, { row: { windows: [ALWAYS], ...row } });
    await Deno.writeTextFile(`${folder}/key`, await world.rest.key(host), { mode: 0o600 });
    const config = {
      work: { base: `${folder}/work` },
      logs: { folder: `${folder}/logs` },
      env: { OUT: `${folder}/out` },
      kinds: { [KIND]: { argv: ["sh", "-c", script], loginTest: { argv: ["true"] } } },
    };
    await Deno.writeTextFile(`${folder}/commands.json`, JSON.stringify(config), { mode: 0o600 });
    await use({
      folder,
      env: {
        LANEWAY_REST_URL: world.rest.url,
        LANEWAY_REST_KEY_FILE: `${folder}/key`,
        LANEWAY_HOST_CONFIG: `${folder}/commands.json`,
      },
      out: async () => (await Deno.readTextFile(`${folder}/out`).catch(() => "")).split("\n").filter((l) => l !== ""),
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Serves until `use` is done, then drains. */
async function serving(env: Record<string, string>, use: () => Promise<void>, args: string[] = []): Promise<CliResult> {
  const stop = new TestStop();
  const running = runCli([...SERVE, ...args], { env, stop, definition });
  try {
    await use();
  } finally {
    stop.stop();
  }
  return await running;
}

async function statusOf(world: HostWorld, item: { readonly id: string }): Promise<unknown> {
  const rows = await world.db.adminSql(
    "select status from queue.work_items where id = $1::uuid union all select 'archived' from queue.work_history where id = $1::uuid",
    [item.id],
  );
  return rows[0]?.status;
}

/** Resolves once the host has beaten `times` more. */
async function beats(world: HostWorld, times: number): Promise<void> {
  const read = async () => {
    const [row] = await world.db.adminSql("select last_heartbeat_at::text as at from queue.hosts where name = 'wsl1'");
    return row?.at;
  };
  for (let n = 0; n < times; n++) {
    const before = await read();
    await waitFor("a heartbeat", async () => await read() !== before);
  }
}

Deno.test("an item is claimed over REST, its command run, and it is done; the attempt is stored, the folder gone", () =>
  withHosts((world) =>
    withMachine({ world, script: 'echo hello; echo "$LANEWAY_ITEM_ID" >>"$OUT"' }, async (machine) => {
      const item = await world.put();
      const result = await serving(machine.env, async () => {
        await waitFor("the item's end", async () => await statusOf(world, item) === "done");
        await waitFor(
          "the attempt",
          async () => (await world.db.adminSql("select 1 from queue.attempts")).length === 1,
        );
      });
      assert.deepEqual(result, { code: 0, out: [], errors: [] });
      assert.deepEqual(await machine.out(), [item.id]);
      const [attempt] = await world.db.adminSql("select host, outcome, exit_code, stdout_tail from queue.attempts");
      assert.deepEqual(attempt, { host: "wsl1", outcome: "done", exit_code: 0, stdout_tail: "hello\n" });
      assert.deepEqual([...Deno.readDirSync(`${machine.folder}/work`)].map(({ name }) => name), []);
    })
  ));

Deno.test("switched off it beats and claims nothing, and switched on it goes on", () =>
  withHosts((world) =>
    withMachine({ world, row: { enabled: false } }, async (machine) => {
      const item = await world.put();
      await serving(machine.env, async () => {
        await beats(world, 3);
        assert.equal(await statusOf(world, item), "queued");
        await world.db.adminSql("update queue.hosts set enabled = true");
        await waitFor("the item's end", async () => await statusOf(world, item) === "done");
        await world.db.adminSql("update queue.hosts set enabled = false");
        await beats(world, 2);
        const later = await world.put();
        await beats(world, 2);
        assert.equal(await statusOf(world, later), "queued");
      });
    })
  ));

Deno.test("two runners of one host share its cap, and an item that ends makes room without a poll", () =>
  withHosts((world) =>
    withMachine({
      world,
      // Each run leaves a file while it lives; how many there are at most is what is held against the cap.
      script: 'mkdir -p "$OUT.d" && touch "$OUT.d/$$" && ls "$OUT.d" | wc -l >>"$OUT"; sleep 0.3; rm "$OUT.d/$$"',
      row: { windows: [{ ...ALWAYS, maxInFlight: 2 }] },
    }, async (machine) => {
      const items = [];
      for (let n = 0; n < 8; n++) items.push(await world.put());
      const stop = new TestStop();
      const runners = [1, 2].map(() => runCli(SERVE, { env: machine.env, stop, definition }));
      try {
        for (const item of items) await waitFor("the end", async () => await statusOf(world, item) === "done");
      } finally {
        stop.stop();
      }
      for (const { code } of await Promise.all(runners)) assert.equal(code, 0);
      const seen = (await machine.out()).map(Number);
      assert.equal(seen.length, 8, "each ran once");
      assert.ok(Math.max(...seen) <= 2, `${Math.max(...seen)} ran at once`);
    })
  ));

Deno.test("a key that is refused while it runs is told once, and a new one in its file is taken up without a restart", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env, folder }) => {
      const notices = noticeServer();
      try {
        await Deno.writeTextFile(`${folder}/key`, await world.rest.key("wsl1", { secret: "x".repeat(40) }));
        const item = await world.put();
        await serving({ ...env, LANEWAY_NOTICE_WEBHOOK: notices.url }, async () => {
          await waitFor("the notice", () => notices.titles.length > 0);
          await Deno.writeTextFile(`${folder}/key`, await world.rest.key("wsl1"));
          await waitFor("the item's end", async () => await statusOf(world, item) === "done");
        });
        assert.deepEqual(notices.titles, ["key refused *"]);
      } finally {
        await notices.stop();
      }
    })
  ));

Deno.test("a runner that has stopped leaves a row that says that nothing runs", () =>
  withHosts((world) =>
    withMachine({ world, script: 'while [ ! -e "$OUT.go" ]; do sleep 0.05; done' }, async ({ env, folder }) => {
      const holds = async () => {
        const [row] = await world.db.adminSql("select current_workers as n from queue.hosts");
        return row?.n;
      };
      await world.put();
      // Seldom enough that no heartbeat of its own comes between the command's end and the stop.
      await serving(env, async () => {
        await waitFor("a heartbeat while it runs", async () => await holds() === 1);
        await Deno.writeTextFile(`${folder}/out.go`, "");
      }, ["--poll", "2s"]);
      assert.equal(await holds(), 0);
    })
  ));

// Finishes its item, and goes on until it is told that it may end.
const FINISHES_ITSELF = (url: string) =>
  `curl --silent --fail --request PATCH --header "Authorization: Bearer $(cat "$(dirname "$OUT")/key")" \
    --header "Content-Profile: queue" --header "Content-Type: application/json" \
    --data '{{"status":"done","lease_expires_at":null,"updated_at":"now","updated_by":"${EMPTY_UUID}"}}' \
    "${url}/work_items?id=eq.$LANEWAY_ITEM_ID&claims=eq.$LANEWAY_FENCE" && while [ ! -e "$OUT.go" ]; do sleep 0.05; done
  echo ended >>"$OUT"; exit 1`;

Deno.test("a command that finished its item itself goes on to its own end, though its lease is over and its row archived", async () => {
  if (!await hasCurl()) return;
  await withHosts((world) =>
    withMachine({ world, script: FINISHES_ITSELF(world.rest.url) }, async ({ env, folder, out }) => {
      const item = await world.put();
      await serving(env, async () => {
        await waitFor("its own write", async () => await statusOf(world, item) === "done");
        // Some renewals later its row is gone, and after some more it may end.
        await beats(world, 5);
        assert.equal(await world.sql.work.archiveDone(0, { limit: 10, keep: true }), 1);
        await beats(world, 10);
        await Deno.writeTextFile(`${folder}/out.go`, "");
        await waitFor(
          "the attempt",
          async () => (await world.db.adminSql("select 1 from queue.attempts")).length === 1,
        );
      }, ["--lease", "1s"]);
      assert.deepEqual(await out(), ["ended"]);
      assert.equal(await statusOf(world, item), "archived");
      assert.deepEqual(await world.db.adminSql("select exit_code, signal from queue.attempts"), [
        { exit_code: 1, signal: null },
      ]);
    })
  );
});

Deno.test("a host whose right to its heartbeat is revoked works on by its row as it reads, and it is told once", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env }) => {
      const notices: string[] = [];
      const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
        const { embeds: [embed] } = await request.json() as { embeds: { title: string }[] };
        notices.push(embed?.title ?? "");
        return new Response(null, { status: 204 });
      });
      const webhook = `http://127.0.0.1:${server.addr.port}/hook`;
      try {
        await serving({ ...env, LANEWAY_NOTICE_WEBHOOK: webhook }, async () => {
          await beats(world, 1);
          await world.db.adminSql("revoke update on queue.hosts from laneway_host");
          await world.db.adminSql(
            "revoke update (last_heartbeat_at, current_workers, updated_at) on queue.hosts from laneway_host",
          );
          await waitFor("the notice", () => notices.length > 0);
          const item = await world.put();
          await waitFor("the item's end", async () => await statusOf(world, item) === "done");
        });
        assert.deepEqual(notices, ["key refused a right"]);
      } finally {
        await server.shutdown();
      }
    })
  ));

Deno.test("check passes a host that is as it should be, and names each right too many", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env }) => {
      await world.db.adminSql("insert into queue.sweep_steps (step, last_run_at) values ('purge-items', now())");
      const good = await runCli(["check"], { env, definition });
      assert.equal(good.code, 0, good.out.join("\n"));
      assert.match(good.out.join("\n"), /ok {4}server .*postgrest/i);
      for (const name of ["key", "rights", "host row", "clock", "sweeper", "work disk", `login ${KIND}`]) {
        assert.ok(
          good.out.some((line) => new RegExp(`^(ok|warn) +${name} `).test(line)),
          `${name}:\n${good.out.join("\n")}`,
        );
      }
      await world.db.adminSql("grant update (priority) on queue.work_items to laneway_host");
      await world.db.adminSql("grant select on queue.work_history to laneway_host");
      await world.db.adminSql("update queue.sweep_steps set last_run_at = now() - interval '1 hour'");
      const bad = await runCli(["check"], { env, definition });
      assert.equal(bad.code, 1);
      const failures = bad.out.filter((line) => line.startsWith("fail"));
      assert.equal(failures.length, 3, failures.join("\n"));
      assert.match(
        failures.join("\n"),
        /may change priority of items[\s\S]*may read finished items[\s\S]*no SQL worker has swept/,
      );
    })
  ));

Deno.test("check refuses a config that gives a command the runner's own key", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env, folder }) => {
      const path = `${folder}/commands.json`;
      const config = JSON.parse(await Deno.readTextFile(path));
      config.kinds[KIND].env = { TOKEN: { secretFile: "key" } };
      await Deno.writeTextFile(path, JSON.stringify(config));
      const { code, out } = await runCli(["check"], { env, definition });
      assert.equal(code, 1);
      assert.match(
        out.join("\n"),
        /fail +grants +variable TOKEN gives commands the runner's own secret \(LANEWAY_REST_KEY_FILE\)/,
      );
    })
  ));

Deno.test("check tells a host without a row, an expired key and a server that is away", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env, folder }) => {
      await world.db.adminSql("delete from queue.hosts");
      const gone = (await runCli(["check"], { env, definition })).out.join("\n");
      assert.match(gone, /fail +host row +queue\.hosts has no row wsl1/);
      await Deno.writeTextFile(`${folder}/key`, await world.rest.key("wsl1", { expired: true }));
      const expired = (await runCli(["check"], { env, definition })).out.join("\n");
      assert.match(expired, /fail +server .*401/);
      assert.match(expired, /fail +key +it expired/);
      const away = await runCli(["check"], { env: { ...env, LANEWAY_REST_URL: "http://127.0.0.1:9" }, definition });
      assert.equal(away.code, 1);
      assert.match(away.out.join("\n"), /fail +server +Cannot ask 127\.0\.0\.1:9: it cannot be reached/);
    })
  ));

Deno.test("a key that others may read, and a config that is not there, end the start at once", () =>
  withHosts((world) =>
    withMachine({ world }, async ({ env, folder }) => {
      await Deno.chmod(`${folder}/key`, 0o644);
      const open = await runCli(SERVE, { env, definition });
      assert.equal(open.code, 2);
      assert.match(open.errors[0] ?? "", /mode 0644 lets others.*chmod 600/);
      await Deno.chmod(`${folder}/key`, 0o600);
      const lost = await runCli(SERVE, { env: { ...env, LANEWAY_HOST_CONFIG: `${folder}/no.json` }, definition });
      assert.equal(lost.code, 1);
      assert.match(lost.errors[0] ?? "", /no\.json/);
    })
  ));
