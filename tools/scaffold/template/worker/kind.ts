/**
 * The kind of work this worker does.
 *
 * @module
 */
import * as z from "zod";
import { defineKind, type Payload, type WorkKind } from "laneway";

/** What an item carries: whom it is about, and nothing that is read from there. Shapes only gain optional fields. */
export interface HandleSampleRecordPayload extends Payload {
  readonly sampleRecordId: string;
}

// Longer than the longest LANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT, so that the effect ends by its own limit.
const TIMEOUT_MS = 600_000;

/** Advances one sample record, once. */
export const HANDLE_SAMPLE_RECORD: WorkKind<HandleSampleRecordPayload> = defineKind("HANDLE_SAMPLE_RECORD", {
  schema: z.object({ sampleRecordId: z.guid() }),
  timeoutMs: TIMEOUT_MS,
});
