/**
 * `create-sample-records`: creates sample records from NDJSON, each with the item that works on it.
 *
 * @module
 */
import * as z from "zod";
import {
  NotFoundError,
  type Parts,
  readLines,
  SettingsError,
  systemClock,
  UsageError,
  ValidationError,
  versionOf,
  type WorkerCommand,
  type WorkerCommandCall,
} from "laneway";
import { sampleRecords } from "./container.ts";
import type { CreatedSampleRecord, NewSampleRecord } from "./sample_records/types.ts";

const MAX_LINE_BYTES = 16 * 1024;

// The id names the record for ever: without one, reading a file twice would create it twice.
const LINE = z.looseObject({
  orgId: z.guid("must be a uuid").transform((id) => id.toLowerCase()),
  orgName: z.string("must be text").min(1, "must not be empty").max(200, "must have at most 200 characters").optional(),
  id: z.guid("must be a uuid"),
});

/** The command. */
export const createSampleRecordsCommand: WorkerCommand = {
  name: "create-sample-records",
  summary: "Creates sample records from NDJSON, each with the item that works on it.",
  options: [
    { flags: "--file <path>", help: "The lines to read; - is standard input.", default: "-" },
    { flags: "--create-orgs", help: "Creates orgs that do not exist yet, named by their lines' orgName." },
  ],
  examples: [
    `echo '{"orgId":"…uuid…","id":"…uuid…","reference":"№ 1"}' | sample-worker create-sample-records --create-orgs`,
  ],
  run: createSampleRecords,
};

async function createSampleRecords(call: WorkerCommandCall): Promise<number> {
  const { settings, options } = call;
  if (settings.store?.engine === "sqlite" && settings.store.path === ":memory:") {
    throw new UsageError("Cannot create into --store memory: it ends with this command; use sqlite:PATH or Postgres");
  }
  const bytes = await openInput(String(options.file ?? "-"));
  // What it does is told on standard output; its log is for what goes wrong.
  const open = await call.open(options.logLevel === undefined ? { logLevel: "warn" } : {});
  try {
    return await createAll(call, open.parts, bytes);
  } finally {
    await open.close();
  }
}

async function createAll(call: WorkerCommandCall, parts: Parts, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  const counts = { INSERTED: 0, EXISTS: 0, refused: 0 };
  for await (const line of readLines(bytes, MAX_LINE_BYTES)) {
    if (call.signal.aborted) break;
    try {
      if (line.text === null) throw new ValidationError("line", line.refused ?? "it cannot be read");
      counts[(await createOne(call, parts, line.text)).outcome]++;
    } catch (error) {
      if (!(error instanceof ValidationError || error instanceof NotFoundError)) throw error;
      counts.refused++;
      call.print(`line ${line.number}: refused: ${error.message}`);
    }
    // The embedded store answers at once: without a turn of the event loop a long file could not be interrupted.
    await systemClock.sleep(0);
  }
  call.print(`${counts.INSERTED} created, ${counts.EXISTS} already there, ${counts.refused} refused`);
  return counts.refused > 0 || call.signal.aborted ? 1 : 0;
}

async function createOne(call: WorkerCommandCall, parts: Parts, text: string): Promise<CreatedSampleRecord> {
  const { orgId, orgName, ...sampleRecord } = readLine(text);
  const { tenancy } = parts.managers;
  const rctx = tenancy.requestContext({ type: "CLI", version: versionOf(call.definition) });
  if (call.options.createOrgs === true) await tenancy.createOrg(rctx, { id: orgId, name: orgName ?? orgId });
  const ctx = await tenancy.serviceContext(rctx, orgId);
  return await sampleRecords(parts).create(ctx, sampleRecord as unknown as NewSampleRecord);
}

function readLine(text: string): z.infer<typeof LINE> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ValidationError("line", "it is not JSON");
  }
  const parsed = LINE.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") || "line";
  throw new ValidationError(
    field,
    `Cannot use ${field}: it ${field === "line" ? "is no JSON object" : issue?.message}`,
  );
}

async function openInput(path: string): Promise<AsyncIterable<Uint8Array>> {
  if (path === "-") return Deno.stdin.readable;
  try {
    return (await Deno.open(path)).readable;
  } catch (cause) {
    throw new SettingsError(`Cannot read --file ${path}: it is not there, or may not be read`, { cause });
  }
}
