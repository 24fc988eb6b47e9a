/**
 * The units are ones that systemd takes; the host runner's says what its playbook promises.
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

const UNITS = [
  { name: "laneway-host-runner.service", binary: "/usr/local/bin/laneway-host-runner" },
  // An instance of it, as only those are run.
  { name: "laneway-worker@.service", binary: "/usr/local/bin/%i" },
];

for (const { name, binary } of UNITS) {
  Deno.test(`the unit ${name} passes systemd-analyze verify`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "laneway-unit-" });
    try {
      // The binary is not installed where tests run.
      const text = (await Deno.readTextFile(`${ROOT}deploy/systemd/${name}`)).replace(binary, "/bin/true");
      const path = `${folder}/${name.replace("@.", "@shipment-notifier.")}`;
      await Deno.writeTextFile(path, text);
      const command = new Deno.Command("systemd-analyze", { args: ["verify", path], stdin: "null" });
      const { success, stderr } = await command.output();
      assert.ok(success, new TextDecoder().decode(stderr));
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      console.log("NOT RUN: there is no systemd-analyze on this machine");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
