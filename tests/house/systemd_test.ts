/**
 * The unit of the host runner is one that systemd takes, and says what the playbook promises.
 */
import assert from "node:assert/strict";
import { ROOT } from "./source_files.ts";

const UNIT = `${ROOT}deploy/systemd/laneway-host-runner.service`;

Deno.test("the host runner's unit runs as its own user, restarts, and waits for the network", async () => {
  const lines = (await Deno.readTextFile(UNIT)).split("\n");
  for (
    const line of [
      "User=laneway-host",
      "Restart=always",
      "RestartSec=15",
      "After=network-online.target",
      "Wants=network-online.target",
      "WantedBy=multi-user.target",
      "EnvironmentFile=/etc/laneway/host-runner.env",
      "Environment=LANEWAY_ENV_FILE=/etc/laneway/host-runner.env",
      "NoNewPrivileges=true",
      "ProtectSystem=strict",
      // The runner drains; it ends its commands' groups itself.
      "KillMode=mixed",
    ]
  ) assert.ok(lines.includes(line), line);
  assert.ok(lines.some((line) => line.startsWith("ExecStartPre=") && line.includes("= 600")), "the mode is looked at");
  assert.ok(!lines.includes("MemoryDenyWriteExecute=true"), "the engine compiles what it runs");
});

Deno.test("the host runner's unit passes systemd-analyze verify", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-unit-" });
  try {
    // The binary is not installed where tests run.
    const text = (await Deno.readTextFile(UNIT)).replace("/usr/local/bin/laneway-host-runner", "/bin/true");
    await Deno.writeTextFile(`${folder}/laneway-host-runner.service`, text);
    const command = new Deno.Command("systemd-analyze", {
      args: ["verify", `${folder}/laneway-host-runner.service`],
      stdin: "null",
    });
    const { success, stderr } = await command.output();
    assert.ok(success, new TextDecoder().decode(stderr));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("not verified: there is no systemd-analyze on this machine");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
