import assert from "node:assert/strict";
import { ConflictError, NotFoundError, UnavailableError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { Database, Row } from "../../db/database.ts";
import type { Membership } from "../types.ts";
import { PostgresTenancyStorage } from "./postgres.ts";

const MEMBER: Membership = {
  orgId: newId(),
  userId: newId(),
  role: "MEMBER",
  createdAt: new Date(0),
  endedAt: null,
};
const ORG_ROW = { id: MEMBER.orgId, name: "A", created_at: new Date(0), ended_at: null };
const USER_ROW = { id: MEMBER.userId, name: "Ada", created_at: new Date(0) };

/** A database that gives these answers, one after the other, whichever login asks. */
function answering(...answers: (Row[] | Error)[]): Database {
  const next = <R extends Row>(): Promise<R[]> => {
    const answer = answers.shift() ?? assert.fail("one statement too many");
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as R[]);
  };
  return { system: next, tenant: next };
}

const CONFLICT = new ConflictError("a key was violated, or a deadlock broken");

Deno.test("writeMembership() that conflicts tells an absent user from a deadlock", async () => {
  await assert.rejects(new PostgresTenancyStorage(answering(CONFLICT, [])).writeMembership(MEMBER), NotFoundError);
  await assert.rejects(new PostgresTenancyStorage(answering(CONFLICT, [USER_ROW])).writeMembership(MEMBER), CONFLICT);
});

Deno.test("writeMembership() answered with no row tells a gone org from an unknown outcome", async () => {
  const ended = { ...ORG_ROW, ended_at: new Date(1) };
  await assert.rejects(new PostgresTenancyStorage(answering([], [])).writeMembership(MEMBER), NotFoundError);
  await assert.rejects(new PostgresTenancyStorage(answering([], [ended])).writeMembership(MEMBER), NotFoundError);
  await assert.rejects(
    new PostgresTenancyStorage(answering([], [ORG_ROW])).writeMembership(MEMBER),
    (error) => error instanceof UnavailableError && error.outcome === "unknown",
  );
});
