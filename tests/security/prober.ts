/**
 * A worker that tries what it must not be able to do, and says what it could.
 *
 * @module
 */
import * as z from "zod";
import { defineKind, type WorkerDefinition } from "../../mod.ts";

const KIND = defineKind("PROBE", { schema: z.looseObject({}) });

/** Each try rejects, or returns what was had. */
const TRIES: Readonly<Record<string, () => unknown>> = {
  "read a file": () => Deno.readTextFile("/etc/hostname"),
  "read a secret": () => Deno.readTextFile("/run/secrets/laneway-probe"),
  "list a folder": () => [...Deno.readDirSync("/etc")].length,
  "write a file": () => Deno.writeTextFile("/tmp/laneway-probe-write", "x"),
  "run a program": () => new Deno.Command("true").output(),
  "signal another process": () => Deno.kill(1, "SIGURG"),
  "load native code": () => Deno.dlopen("libc.so.6", {}),
  "see a foreign variable": () => {
    const value = Deno.env.get("FOREIGN");
    if (value === undefined) throw new Error("it reads as unset");
    return value;
  },
  "see the environment": () => {
    const foreign = Object.keys(Deno.env.toObject()).filter((name) => !name.startsWith("LANEWAY_"));
    if (foreign.length === 0) throw new Error("it holds nothing foreign");
    return foreign;
  },
  "import code from the network": () => import(`http://127.0.0.1:${"9"}/code.ts`),
};

/** The worker. */
export const definition: WorkerDefinition = {
  name: "prober",
  release: "1.0.0",
  kinds: [KIND],
  build: () => ({ handlers: [{ kind: KIND, handle: () => {} }] }),
  commands: [{
    name: "probe",
    summary: "Tries what it must not be able to do.",
    async run(call) {
      for (const [what, attempt] of Object.entries(TRIES)) {
        try {
          await attempt();
          call.print(`could ${what}`);
        } catch (error) {
          call.print(`refused ${what}: ${error instanceof Error ? error.name : error}`);
        }
      }
      return 0;
    },
  }],
};
