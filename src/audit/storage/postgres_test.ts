import assert from "node:assert/strict";
import { ConflictError, UnavailableError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { Database, Row } from "../../db/database.ts";
import type { NewEvent } from "../types.ts";
import { PostgresAuditStorage } from "./postgres.ts";

const EVENT: NewEvent = { id: newId(), orgId: newId(), kind: "a.b.c", actorId: newId(), requestId: null, payload: {} };

/** A database that gives these answers to tenant statements, one after the other. */
function answering(...answers: (Row[] | Error)[]): Database {
  return {
    system: () => assert.fail("appending is a tenant's"),
    tenant: <R extends Row>(orgId: string) => {
      assert.equal(orgId, EVENT.orgId);
      const answer = answers.shift() ?? assert.fail("one statement too many");
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as R[]);
    },
  };
}

const LOST = new UnavailableError("lost", "unknown");
const RACED = new ConflictError("the event is there");

Deno.test("appendEvent() whose answer was lost gives the seq that is read back", async () => {
  const storage = new PostgresAuditStorage(answering(LOST, [{ seq: "7" }]));
  assert.deepEqual(await storage.appendEvent(EVENT), { seq: 7, inserted: false });
});

Deno.test("appendEvent() whose answer was lost and that left no event tells the failure", async () => {
  await assert.rejects(new PostgresAuditStorage(answering(LOST, [])).appendEvent(EVENT), LOST);
});

Deno.test("appendEvent() that lost a race gives the winner's seq", async () => {
  const storage = new PostgresAuditStorage(answering(RACED, [{ seq: "3" }]));
  assert.deepEqual(await storage.appendEvent(EVENT), { seq: 3, inserted: false });
});

Deno.test("appendEvent() that met another conflict, a deadlock, tells it", async () => {
  await assert.rejects(new PostgresAuditStorage(answering(RACED, [])).appendEvent(EVENT), RACED);
});

Deno.test("appendEvent() that was answered with no row does not claim to have written one", async () => {
  const refused = new PostgresAuditStorage(answering([], [])).appendEvent(EVENT);
  await assert.rejects(refused, (error) => error instanceof UnavailableError && error.outcome === "unknown");
});

Deno.test("appendEvent() that was never sent is not read back", async () => {
  const unsent = new UnavailableError("down", "not-executed");
  await assert.rejects(new PostgresAuditStorage(answering(unsent)).appendEvent(EVENT), unsent);
});
