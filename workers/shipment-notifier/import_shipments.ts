/**
 * Creates shipments from NDJSON, one a line. A line that is refused harms no other.
 *
 * @module
 */
import * as z from "zod";
import {
  type InputLine,
  type Json,
  NotFoundError,
  type OpContext,
  readLines,
  systemClock,
  ValidationError,
} from "../../mod.ts";
import { checkNewShipment, explain } from "./shipments/rules.ts";
import type { CreatedShipment, NewShipment, ShipmentManager } from "./shipments/types.ts";

/** The longest line that is read, bytes. */
export const MAX_LINE_BYTES = 16 * 1024;

/** One line's shipment, and the org it belongs to. */
export interface ShipmentLine {
  readonly orgId: string;
  /** For whoever creates orgs that do not exist yet. */
  readonly orgName: string | null;
  readonly shipment: NewShipment & { readonly id: string };
}

/** What became of one line. */
export type LineOutcome =
  & { readonly line: number }
  & (
    | { readonly refused: string }
    | { readonly refused: null; readonly ctx: OpContext; readonly created: CreatedShipment }
  );

/** How lines are imported. */
export interface ImportOptions {
  readonly shipments: ShipmentManager;
  /** The context a line's shipment is created under; a `NotFoundError` refuses the line. */
  contextOf(line: ShipmentLine): Promise<OpContext>;
  /** Puts every notification into this lane, whatever its line says. */
  readonly lane?: string;
  /** Ends the import after the line at hand. */
  readonly signal?: AbortSignal;
}

// Its id names the shipment for ever; without one a second import of the file would create it again.
const ORG = z.object({
  orgId: z.guid("must be a uuid").transform((id) => id.toLowerCase()),
  orgName: z.string().min(1).max(200).optional(),
  id: z.guid("must be a uuid"),
});

/**
 * Creates a shipment for every line, in order. Safe to run again: a shipment that exists is left as it stands.
 *
 * @throws {UnavailableError} The store is out of reach; lines told so far are safe.
 */
export async function* importShipments(
  bytes: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): AsyncGenerator<LineOutcome> {
  for await (const line of readLines(bytes, MAX_LINE_BYTES)) {
    if (options.signal?.aborted) return;
    yield await importLine(line, options);
    // The embedded store answers at once: without a turn of the event loop a long import would starve a worker beside it.
    await systemClock.sleep(0);
  }
}

async function importLine(line: InputLine, options: ImportOptions): Promise<LineOutcome> {
  try {
    if (line.text === null) throw new ValidationError("line", line.refused ?? "it cannot be read");
    const parsed = parseShipmentLine(line.text);
    const ctx = await options.contextOf(parsed);
    const shipment = options.lane === undefined ? parsed.shipment : { ...parsed.shipment, lane: options.lane };
    return { line: line.number, refused: null, ctx, created: await options.shipments.create(ctx, shipment) };
  } catch (error) {
    if (!(error instanceof ValidationError || error instanceof NotFoundError)) throw error;
    return { line: line.number, refused: error.message };
  }
}

/**
 * Reads one line.
 *
 * @throws {ValidationError} It is no JSON, or a field does not fit; the message names the field.
 */
export function parseShipmentLine(text: string): ShipmentLine {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ValidationError("line", "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ValidationError("line", "it is not a JSON object");
  }
  const parsed = ORG.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue?.path.join(".") ?? "line";
    throw new ValidationError(field, `Cannot use ${field}: ${explain(issue, value)}`);
  }
  const { orgId: _org, orgName: _name, ...about } = value as { readonly [key: string]: Json };
  const shipment = checkNewShipment(about);
  return {
    orgId: parsed.data.orgId,
    orgName: parsed.data.orgName ?? null,
    shipment: { ...shipment, id: parsed.data.id },
  };
}

/** Where lines come from: a file, or `-` for standard input. Opened at once, so that a wrong path is told at once. */
export async function openInput(path: string): Promise<AsyncIterable<Uint8Array>> {
  if (path === "-") return Deno.stdin.readable;
  if ((await Deno.stat(path)).isDirectory) throw new Error("it is a folder");
  return (await Deno.open(path)).readable;
}
