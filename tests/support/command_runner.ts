/**
 * A runner with commands that go on, for a test to kill: `command_runner.ts FOLDER [COUNT]`. Each writes its run's mark to
 * FOLDER/started, or with a COUNT to a file of its own in that folder.
 *
 * @module
 */
import { systemClock } from "../../src/core/clock.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { openCommands } from "../../src/host/command/handler.ts";
import { parseCommandConfig } from "../../src/host/command/load.ts";
import { mintOp, mintRequest } from "../../src/tenancy/contexts.ts";
import { ORG_ID, workItem } from "./command_rig.ts";

const folder = Deno.args[0] ?? ".";
const script =
  'trap "" TERM; sleep 300 & (setsid sleep 300 >/dev/null 2>&1 &); sleep 0.2; echo $LANEWAY_RUN > "$1.new"; mv "$1.new" "$1"; sleep 300';
const config = parseCommandConfig(
  JSON.stringify({
    work: { base: "work" },
    logs: { folder: "logs" },
    kinds: { SLOW: { argv: ["/bin/sh", "-c", script, "sh", "{payload.started}"] } },
  }),
  `${folder}/commands.json`,
);
const commands = await openCommands({
  config,
  host: "rig-host",
  worker: "host-runner@rig/1",
  clock: systemClock,
  logger: silentLogger,
  recordAttempt: () => Promise.resolve(),
});
const count = Number(Deno.args[1] ?? "0");
const rctx = mintRequest({ type: "WORKER", version: "rig@0" }, newId(), undefined);
const ctx = mintOp(rctx, { orgId: ORG_ID, userId: EMPTY_UUID, role: "SERVICE" });
const { signal } = new AbortController();
if (count > 0) await Deno.mkdir(`${folder}/started`, { recursive: true });
const paths = count === 0
  ? [`${folder}/started`]
  : Array.from({ length: count }, () => `${folder}/started/${crypto.randomUUID()}`);
await Promise.all(paths.map((started) => {
  const item = workItem("SLOW", { started });
  return commands.handlers[0]?.handle(ctx, item, { signal, attempt: 1, fence: 1, deadline: null });
}));
