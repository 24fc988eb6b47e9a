/**
 * Operations on sample records.
 *
 * @module
 */
import * as z from "zod";
import {
  ConflictError,
  isUuid,
  newId,
  newOutboxRow,
  NotFoundError,
  type OpContext,
  type OutboxRelay,
  UnavailableError,
  ValidationError,
} from "laneway";
import type {
  CreatedSampleRecord,
  NewSampleRecord,
  SampleRecord,
  SampleRecordManager,
  SampleRecordStorage,
} from "./types.ts";

/** The lane of items whose caller names none: the one this worker serves by default. */
export const LANE = "sample-lane";

// deno-lint-ignore no-control-regex -- NUL is no text in Postgres, and the others have no place in a name.
const CONTROL = /[\u0000-\u001f\u007f]/;

const NEW_SAMPLE_RECORD: z.ZodType<NewSampleRecord> = z.strictObject({
  id: z.guid("must be a uuid").transform((id) => id.toLowerCase()).optional(),
  reference: z.string("must be text").max(200, "must have at most 200 characters")
    .refine((text) => text.trim() !== "" && !CONTROL.test(text) && text.isWellFormed(), "must be one line of text"),
  lane: z.string("must be text")
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be 1 to 63 letters, digits, dots, dashes or underscores")
    .optional(),
});

/** Builds the manager. */
export function createSampleRecordManager(
  storage: SampleRecordStorage,
  outbox: Pick<OutboxRelay, "relay">,
): SampleRecordManager {
  return new SampleRecordManagerImpl(storage, outbox);
}

class SampleRecordManagerImpl implements SampleRecordManager {
  readonly #storage: SampleRecordStorage;
  readonly #outbox: Pick<OutboxRelay, "relay">;

  constructor(storage: SampleRecordStorage, outbox: Pick<OutboxRelay, "relay">) {
    this.#storage = storage;
    this.#outbox = outbox;
  }

  async create(ctx: OpContext, sampleRecord: NewSampleRecord): Promise<CreatedSampleRecord> {
    const { id = newId(), reference, lane = LANE } = checkNew(sampleRecord);
    const item = newOutboxRow(ctx, "work.handle_sample_record", { sampleRecordId: id, lane });
    const rows = [newOutboxRow(ctx, "sample_records.sample_record.created", { id }), item];
    const insert = { id, reference, effectId: item.id, createdBy: ctx.userId };
    const { value, lost } = await answerOrLost(() => this.#storage.create(ctx.orgId, insert, rows));
    const found = value ?? await this.#storage.read(ctx.orgId, id);
    if (found === null) throw lost ?? gone(ctx, id);
    // Only a write of ours has this effect, whether or not its answer came back.
    if (found.effectId !== item.id) return { outcome: "EXISTS", sampleRecord: found };
    await this.#outbox.relay(rows);
    return { outcome: "INSERTED", sampleRecord: found };
  }

  async read(ctx: OpContext, id: string): Promise<SampleRecord> {
    const found = isUuid(id) ? await this.#storage.read(ctx.orgId, id.toLowerCase()) : null;
    if (found === null) throw gone(ctx, id);
    return found;
  }

  async markDone(ctx: OpContext, id: string, expectedVersion: number): Promise<SampleRecord> {
    const rows = [newOutboxRow(ctx, "sample_records.sample_record.done", { id })];
    const mark = { id, expectedVersion, updatedBy: ctx.userId };
    const { value, lost } = await answerOrLost(() => this.#storage.markDone(ctx.orgId, mark, rows));
    if (value !== null) {
      await this.#outbox.relay(rows);
      return value;
    }
    const now = await this.read(ctx, id);
    // Done from just this version: by us, or by one who did the same. Its event waits in the outbox for the sweep.
    if (lost !== null && now.status === "done" && now.version === expectedVersion + 1) return now;
    if (lost !== null && now.version === expectedVersion) throw lost;
    throw new ConflictError(
      `Cannot mark sample record ${id} done as version ${expectedVersion} must still be there: it is ${now.status} at ` +
        `version ${now.version}; read it again`,
    );
  }
}

function checkNew(sampleRecord: NewSampleRecord): NewSampleRecord {
  const parsed = NEW_SAMPLE_RECORD.safeParse(sampleRecord);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") || "sampleRecord";
  throw new ValidationError(field, `Cannot use ${field}: it ${issue?.message ?? "does not fit"}`);
}

/** Runs a write. An answer that was lost is told as such, for the caller to read back; any other error is thrown. */
async function answerOrLost<T>(
  write: () => Promise<T | null>,
): Promise<{ readonly value: T | null; readonly lost: UnavailableError | null }> {
  try {
    return { value: await write(), lost: null };
  } catch (error) {
    if (!(error instanceof UnavailableError) || error.outcome !== "unknown") throw error;
    return { value: null, lost: error };
  }
}

function gone(ctx: OpContext, id: string): NotFoundError {
  return new NotFoundError(`Cannot read sample record ${id}: org ${ctx.orgId} has none of this id`);
}
