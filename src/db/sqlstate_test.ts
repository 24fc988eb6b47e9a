import assert from "node:assert/strict";
import { ConflictError, InvariantError, UnavailableError, ValidationError } from "../core/errors.ts";
import { isConnectionDoubt, sqlState, translateError } from "./sqlstate.ts";

function serverError(code: string, more: Record<string, unknown> = {}): Error {
  return Object.assign(new Error(`the server said ${code}`), { code, severity: "ERROR", ...more });
}

Deno.test("translateError() gives each SQLSTATE its error, keeping the cause", () => {
  const expected: [string, new (...args: never[]) => Error][] = [
    ["23505", ConflictError],
    ["23503", ConflictError],
    ["23P01", ConflictError],
    ["40001", ConflictError],
    ["40P01", ConflictError],
    ["22P02", ValidationError],
    ["22P05", ValidationError],
    ["23514", ValidationError],
    ["23502", ValidationError],
    ["42P01", UnavailableError],
    ["3F000", UnavailableError],
    ["28P01", UnavailableError],
    ["28000", UnavailableError],
    ["3D000", UnavailableError],
    ["42501", UnavailableError],
    ["53300", UnavailableError],
    ["53100", UnavailableError],
    ["57014", UnavailableError],
    ["25006", UnavailableError],
    ["55P03", UnavailableError],
    ["42601", InvariantError],
  ];
  for (const [code, type] of expected) {
    const cause = serverError(code);
    const error = translateError(cause);
    assert.ok(error instanceof type, `${code} gave ${error.name}`);
    assert.equal(error.cause, cause);
    if (error instanceof UnavailableError) assert.equal(error.outcome, "not-executed", code);
  }
});

Deno.test("translateError() calls a row that breaks a policy a bug, not a missing right", () => {
  assert.ok(translateError(serverError("42501", { routine: "ExecWithCheckOptions" })) instanceof InvariantError);
});

Deno.test("translateError() names the column or constraint of a refused value", () => {
  const error = translateError(serverError("23514", { constraint_name: "orgs_name_check" }));
  assert.ok(error instanceof ValidationError);
  assert.equal(error.field, "orgs_name_check");
});

Deno.test("translateError() leaves the outcome open when the connection is lost, but not while it was being opened", () => {
  const lost = [
    Object.assign(new Error("write CONNECTION_CLOSED"), { code: "CONNECTION_CLOSED" }),
    Object.assign(new Error("write EPIPE"), { code: "EPIPE", errno: -32 }),
    serverError("57P01"),
    serverError("08006"),
    new TypeError("a driver's own trouble"),
    undefined,
  ];
  for (const cause of lost) {
    assert.ok(isConnectionDoubt(cause));
    const error = translateError(cause);
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.outcome, "unknown");
    const opening = translateError(cause, { opening: true });
    assert.ok(opening instanceof UnavailableError);
    assert.equal(opening.outcome, "not-executed");
    assert.match(opening.message, /^Cannot connect to the database \(.*\): check that it runs, and host and port/);
  }
});

Deno.test("translateError() tells of a host that is not known", () => {
  const unknown = Object.assign(new Error("getaddrinfo ENOTFOUND db.invalid"), { code: "ENOTFOUND" });
  assert.match(translateError(unknown, { opening: true }).message, /check the host of the database URL$/);
});

Deno.test("translateError() passes errors of ours unchanged", () => {
  const error = new ConflictError("held by another");
  assert.equal(translateError(error), error);
});

Deno.test("sqlState() is not fooled by system errors whose code looks like one", () => {
  assert.equal(sqlState(Object.assign(new Error("pipe"), { code: "EPIPE" })), undefined);
  assert.equal(sqlState(serverError("23505")), "23505");
  assert.equal(isConnectionDoubt(serverError("57014")), false);
});
