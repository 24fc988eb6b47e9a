/**
 * The one translator of driver errors into ours. Messages name login, database and fix; never a URL, a password or the
 * parameters of a statement.
 *
 * @module
 */
import {
  ConflictError,
  InvariantError,
  LanewayError,
  type Outcome,
  UnavailableError,
  ValidationError,
} from "../core/errors.ts";

/** What is known about the statement that failed. */
export interface ErrorContext {
  /** The connection was still being opened, so nothing was executed. */
  opening?: boolean;
}

interface DriverError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly constraint_name?: unknown;
  readonly column_name?: unknown;
  readonly routine?: unknown;
}

/** The SQLSTATE of an error the server reported, or undefined when it came from elsewhere. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || error instanceof LanewayError) return undefined;
  const code = (error as DriverError).code;
  // Only the server's errors carry a severity; EPIPE and friends have five letters too.
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code) || !("severity" in error)) return undefined;
  return code;
}

/**
 * Whether an error leaves the connection in doubt: it did not come from the server, or says that the server process is
 * going away. The client that met it is thrown away.
 */
export function isConnectionDoubt(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state.startsWith("57P") || state.startsWith("08");
}

/**
 * Translates a driver error, keeping it as `cause`. An error of ours passes unchanged.
 *
 * 23505, 23503, 23P01, 40001, 40P01 → `ConflictError`; class 22, 23514, 23502 → `ValidationError`; no connection, lost
 * connection, classes 28, 3D, 53, 57, 58, XX, 25006, 55P03, missing rights or tables → `UnavailableError`; anything else
 * the server refuses is a statement of ours that is wrong: `InvariantError`.
 */
export function translateError(error: unknown, context: ErrorContext = {}): LanewayError {
  if (error instanceof LanewayError) return error;
  const state = sqlState(error);
  if (state === undefined || isConnectionDoubt(error)) return lostConnection(error, context);
  return refusedConnection(state, error) ?? refusedData(state, error) ?? refusedStatement(state, error);
}

function lostConnection(error: unknown, context: ErrorContext): UnavailableError {
  const code = (error as DriverError | undefined)?.code;
  const label = typeof code === "string" ? `${code}: ` : "";
  const outcome: Outcome = context.opening || code === "57P03" ? "not-executed" : "unknown";
  const said = `(${label}${messageOf(error)})`;
  const message = context.opening
    ? `Cannot connect to the database ${said}: ${connectFix(code)}`
    : `The connection to the database was lost ${said}`;
  return new UnavailableError(message, outcome, { cause: error });
}

function connectFix(code: unknown): string {
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "check the host of the database URL";
  return "check that it runs, and host and port of the database URL";
}

function refusedConnection(state: string, error: unknown): UnavailableError | undefined {
  const said = messageOf(error);
  const give = (message: string) => new UnavailableError(message, "not-executed", { cause: error });
  if (state.startsWith("28")) {
    return give(`Cannot connect to the database: ${said}; check user and password of the database URL`);
  }
  if (state === "3D000") return give(`Cannot connect to the database: ${said}; create it or correct the database URL`);
  if (state === "42P01" || state === "3F000" || state === "42703") {
    return give(`The database does not hold this build's schema (${said}): run \`migrate up\``);
  }
  if (state === "42501" && (error as DriverError).routine !== "ExecWithCheckOptions") {
    return give(
      `The database login may not do this (${said}): grant it its role (laneway_runtime, laneway_system or ` +
        "laneway_host), or run `migrate up`",
    );
  }
  if (state === "53300") {
    return give(`The database has no connection left (${said}): lower the pools or raise its limit`);
  }
  if (/^(53|57|58|XX)/.test(state)) return give(`The database cannot serve now (${state}: ${said})`);
  if (state === "25006") return give(`The database is read-only now (${said}): it may be failing over`);
  if (state === "55P03") return give(`A lock was not to be had in time (${said})`);
  return undefined;
}

function refusedData(state: string, error: unknown): LanewayError | undefined {
  const { constraint_name: constraint, column_name: column } = error as DriverError;
  const field = [column, constraint].find((name) => typeof name === "string" && name !== "");
  if (["23505", "23503", "23P01", "40001", "40P01"].includes(state)) {
    return new ConflictError(`The write conflicts with another (${state}: ${messageOf(error)})`, { cause: error });
  }
  if (state.startsWith("22") || state === "23514" || state === "23502") {
    return new ValidationError(
      typeof field === "string" ? field : "parameters",
      `The database refused a value (${state}: ${messageOf(error)})`,
      { cause: error },
    );
  }
  return undefined;
}

function refusedStatement(state: string, error: unknown): InvariantError {
  return new InvariantError(`The database refused a statement (${state}: ${messageOf(error)})`, { cause: error });
}

function messageOf(error: unknown): string {
  const message = (error as DriverError | undefined)?.message;
  return typeof message === "string" && message !== "" ? message : "no reason given";
}
