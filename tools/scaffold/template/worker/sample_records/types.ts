/**
 * The sample record: what this worker's items are about. Versioned, and written together with the outbox rows that tell
 * of the write.
 *
 * @module
 */
import type { OpContext, OutboxRow } from "laneway";

/** `open`: its effect is still to be made. `done`: it was made, and marked once. */
export type SampleRecordStatus = "open" | "done";

/** One sample record. Carries no org: it is read and written under a context, which names the org. */
export interface SampleRecord {
  readonly id: string;
  /** 1 when created, one more with each write: what a compare-and-set compares. */
  readonly version: number;
  /** What people call it, 1–200 characters. */
  readonly reference: string;
  readonly status: SampleRecordStatus;
  /** Names its effect, however often it is made; the id of its HANDLE_SAMPLE_RECORD item. */
  readonly effectId: string;
  /** Database time of the mark; null until then. */
  readonly doneAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly createdBy: string;
  readonly updatedBy: string;
}

/** What a caller gives; the rest belongs to the manager. */
export interface NewSampleRecord {
  /** Names it for ever: creating it again changes nothing. Minted when absent. */
  readonly id?: string;
  readonly reference: string;
  /** The lane its item waits in. Default `sample-lane`. */
  readonly lane?: string;
}

/** What a creation met, and the sample record as it stands. */
export interface CreatedSampleRecord {
  readonly outcome: "INSERTED" | "EXISTS";
  readonly sampleRecord: SampleRecord;
}

/** Operations on sample records. */
export interface SampleRecordManager {
  /**
   * Creates one and, in the same write, the outbox rows that announce it and ask for its work; then relays them. One that
   * has this id is left as it stands. A crash after the write leaves the rows to the sweep; a lost answer is read back.
   *
   * @throws {ValidationError} Naming the field, before anything is written.
   */
  create(ctx: OpContext, sampleRecord: NewSampleRecord): Promise<CreatedSampleRecord>;
  /** @throws {NotFoundError} There is none of this id in the context's org. */
  read(ctx: OpContext, id: string): Promise<SampleRecord>;
  /**
   * Marks it done, by compare-and-set on its version, and announces it in the same write. A lost answer is read back.
   *
   * @throws {ConflictError} It has another version by now, or is done already: read it again.
   */
  markDone(ctx: OpContext, id: string, expectedVersion: number): Promise<SampleRecord>;
}

/** One to be inserted; storage gives it version 1, its status and its times. */
export type SampleRecordInsert = Pick<SampleRecord, "id" | "reference" | "effectId" | "createdBy">;

/** A mark to be made. */
export interface DoneMark {
  readonly id: string;
  readonly expectedVersion: number;
  /** Who signs it. */
  readonly updatedBy: string;
}

/** Storage of sample records. Two implementations, one contract (`tests/contract.ts`). Storage trusts its caller. */
export interface SampleRecordStorage {
  /** Inserts one with its outbox rows, all or nothing; null, and nothing written, when the org has one of this id. */
  create(orgId: string, sampleRecord: SampleRecordInsert, rows: readonly OutboxRow[]): Promise<SampleRecord | null>;
  /** Null when the org has none of this id. */
  read(orgId: string, id: string): Promise<SampleRecord | null>;
  /** Marks one that is open at the expected version, with its outbox rows; null, and nothing written, otherwise. */
  markDone(orgId: string, mark: DoneMark, rows: readonly OutboxRow[]): Promise<SampleRecord | null>;
}
