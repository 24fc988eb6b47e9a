/**
 * The compiled host runner: its permissions are enough for all it does, and what escaped a run is ended by it too.
 */
import assert from "node:assert/strict";
import { findMarked } from "../../src/host/command/processes.ts";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { KIND, withHosts } from "../support/host_world.ts";
import { waitFor } from "../support/wait_for.ts";

const ALWAYS = {
  name: "a",
  timeZone: "Europe/Berlin",
  days: [],
  from: "00:00",
  to: "00:00",
  maxInFlight: 1,
  weights: null,
};
// It leaves a process in a session of its own, and says how that one's environment is marked.
const SCRIPT = 'setsid -f sleep 300; echo "$LANEWAY_RUN $HOME" >>"$OUT"';

Deno.test("the binary checks, claims, runs a command to its end and ends what escaped it", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-host-binary-" });
  try {
    const binary = await buildBinary("host-runner", folder);
    if (binary === null) return;
    await withHosts(async (world) => {
      await world.host("wsl1", { row: { windows: [ALWAYS] } });
      await world.db.adminSql("insert into queue.sweep_steps (step, last_run_at) values ('purge-items', now())");
      await Deno.writeTextFile(`${folder}/key`, await world.rest.key("wsl1"), { mode: 0o600 });
      const config = {
        ...{ work: { base: `${folder}/work` }, logs: { folder: `${folder}/logs` } },
        env: { OUT: `${folder}/out`, HOME: { fromEnv: "HOME" } },
        kinds: { [KIND]: { argv: ["sh", "-c", SCRIPT], loginTest: { argv: ["true"] }, nice: 5 } },
      };
      await Deno.writeTextFile(`${folder}/commands.json`, JSON.stringify(config), { mode: 0o600 });
      const env = {
        ...{ HOME: folder, LANEWAY_POLL: "200ms", LANEWAY_HTTP_PORT: "0", LANEWAY_LOG_FORMAT: "json" },
        LANEWAY_REST_URL: world.rest.url,
        LANEWAY_REST_KEY_FILE: `${folder}/key`,
        LANEWAY_HOST_CONFIG: `${folder}/commands.json`,
      };
      const check = await runBinary(binary, ["check"], env);
      assert.equal(check.code, 0, check.out + check.errors);
      assert.doesNotMatch(check.out, /NotCapable|cannot be told/);
      const running = startBinary(binary, [], env);
      try {
        const item = await world.put();
        await waitFor("the item's end", async () => (await world.read(item)).status === "done", { timeoutMs: 30_000 });
      } finally {
        running.kill("SIGTERM");
        await running.ended;
      }
      assert.deepEqual(await running.ended, { code: 0, signal: null }, running.log());
      const [mark = "", home] = (await Deno.readTextFile(`${folder}/out`)).trim().split(" ");
      assert.equal(home, folder);
      assert.notEqual(mark, "");
      assert.deepEqual(await findMarked(mark), []);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
