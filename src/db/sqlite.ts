/**
 * The embedded store: `node:sqlite`, one synchronous function an operation. `:memory:` for tests and throw-away workers,
 * a file in WAL mode with `synchronous=FULL` for one machine.
 *
 * @module
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Clock, systemClock } from "../core/clock.ts";
import { SettingsError, UnavailableError } from "../core/errors.ts";
import { beginHold, endHold } from "../core/turns.ts";

/** A value SQLite binds. Booleans travel as 0 and 1, times as epoch milliseconds, JSON as text. */
export type SqliteParam = string | number | null;

/** A row as SQLite returns it. */
export type SqliteRow = Record<string, string | number | null>;

/** Statements inside one operation. All of it is synchronous: nothing else can come between. */
export interface SqliteSession {
  /** Database time: the clock's wall time, epoch milliseconds. */
  readonly nowMs: number;
  /** Every row of a statement. */
  all<R extends SqliteRow = SqliteRow>(sql: string, ...params: SqliteParam[]): R[];
  /** The first row of a statement; undefined when there is none. */
  get<R extends SqliteRow = SqliteRow>(sql: string, ...params: SqliteParam[]): R | undefined;
  /** Every row of a statement as its columns' values, in their order: for statements that bring many wide rows. */
  rows(sql: string, ...params: SqliteParam[]): SqliteParam[][];
  /** Returns how many rows changed. */
  run(sql: string, ...params: SqliteParam[]): number;
  /** Runs a script of several statements. */
  script(sql: string): void;
}

/** How to open a store. */
export interface SqliteOptions {
  /** Database time. Default the system clock. */
  clock?: Clock;
  /** `FULL` survives power loss, `NORMAL` survives a crash of the process. Default `FULL`. */
  synchronous?: "FULL" | "NORMAL";
  /** How long an operation waits for another process's write before it gives up, milliseconds. Default 10 000. */
  busyMs?: number;
}

// Held inside the engine, so it blocks the event loop: keep it short, then wait outside.
const ENGINE_BUSY_MS = 20;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

/** One open store. Operations of one process are serialised by the synchronous API itself. */
export class SqliteDatabase {
  /** The file, or `:memory:`. */
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #busyMs: number;
  readonly #statements = new Map<string, StatementSync>();
  /** Those that answer with lists of values. */
  readonly #listStatements = new Map<string, StatementSync>();
  #closed = false;

  /**
   * Opens the file, making it when it is not there.
   *
   * @throws {SettingsError} The file cannot be opened or is no database.
   */
  constructor(path: string, options: SqliteOptions = {}) {
    this.path = path;
    this.#clock = options.clock ?? systemClock;
    this.#busyMs = options.busyMs ?? 10_000;
    try {
      this.#db = new DatabaseSync(path, { enableForeignKeyConstraints: true });
      this.#db.exec(`pragma busy_timeout = ${ENGINE_BUSY_MS * 100}`);
      if (path !== ":memory:") this.#db.exec("pragma journal_mode = wal");
      this.#db.exec(`pragma synchronous = ${path === ":memory:" ? "OFF" : options.synchronous ?? "FULL"}`);
      this.#db.exec(`pragma busy_timeout = ${ENGINE_BUSY_MS}`);
    } catch (cause) {
      throw new SettingsError(`Cannot open the store sqlite:${path}: ${whyClosed(cause)}`, { cause });
    }
  }

  /** Runs `operation` in one `BEGIN IMMEDIATE` transaction: all of it lands, or none. */
  write<T>(operation: (session: SqliteSession) => T): Promise<T> {
    return this.#retryBusy(() => {
      this.#prepare("begin immediate").run();
      try {
        const result = operation(this.#session());
        this.#prepare("commit").run();
        return result;
      } catch (error) {
        try {
          this.#db.exec("rollback");
        } catch {
          // The engine has rolled back by itself (a full disk, a failed commit).
        }
        throw error;
      }
    });
  }

  /** Runs `operation` on one consistent snapshot. */
  read<T>(operation: (session: SqliteSession) => T): Promise<T> {
    return this.#retryBusy(() => {
      this.#prepare("begin").run();
      try {
        return operation(this.#session());
      } finally {
        this.#db.exec("rollback");
      }
    });
  }

  /** Closes the store; closing twice is one closing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#statements.clear();
    this.#listStatements.clear();
    this.#db.close();
  }

  async #retryBusy<T>(attempt: () => T): Promise<T> {
    const startedMs = this.#clock.monotonic();
    for (let delayMs = 5;; delayMs = Math.min(delayMs * 2, 200)) {
      if (this.#closed) throw new UnavailableError(`The store sqlite:${this.path} is closed`, "not-executed");
      try {
        beginHold();
        const result = attempt();
        // An answer that is there at once lets its caller go on without the event loop turning: a worker that drains a
        // backlog would hold up its own renewals and everybody's HTTP until its end.
        await endHold();
        return result;
      } catch (error) {
        if (!isBusy(error)) throw translate(error, this.path);
        if (this.#clock.monotonic() - startedMs >= this.#busyMs) {
          throw new UnavailableError(
            `The store sqlite:${this.path} stayed locked by another process for ${this.#busyMs} ms`,
            "not-executed",
            { cause: error },
          );
        }
      }
      await systemClock.sleep(delayMs * (0.5 + Math.random()));
    }
  }

  // Also for begin and commit: errors of `exec` carry no result code, so that a lock could not be told from a fault.
  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  // Naming each value of each row costs more than reading it: 28 columns as an object take 2.6 µs longer than as a list.
  #prepareLists(sql: string): StatementSync {
    let statement = this.#listStatements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      // Deno has it and its types do not.
      (statement as StatementSync & { setReturnArrays(on: boolean): void }).setReturnArrays(true);
      this.#listStatements.set(sql, statement);
    }
    return statement;
  }

  #session(): SqliteSession {
    const prepare = (sql: string) => this.#prepare(sql);
    return {
      nowMs: Math.floor(this.#clock.now()),
      all: <R>(sql: string, ...params: SqliteParam[]) => prepare(sql).all(...params) as R[],
      get: <R>(sql: string, ...params: SqliteParam[]) => prepare(sql).get(...params) as R | undefined,
      rows: (sql, ...params) => this.#prepareLists(sql).all(...params) as unknown as SqliteParam[][],
      run: (sql, ...params) => Number(prepare(sql).run(...params).changes),
      script: (sql) => this.#db.exec(sql),
    };
  }
}

// Deno's own text speaks of flags that a compiled binary does not take.
function whyClosed(cause: unknown): string {
  if (cause instanceof Deno.errors.NotCapable) {
    return "this program may not read and write it; a binary for containers writes no files: use Postgres or " +
      "--store memory, or build with --profile general";
  }
  return `${
    cause instanceof Error ? cause.message : cause
  }; name a file in a folder that exists and can be written, or ` +
    "use --store memory";
}

function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

// Disk full (13), I/O error (10), read-only (8), cannot open (14): the store is out of reach, not the input wrong.
const OUT_OF_REACH: ReadonlySet<number> = new Set([8, 10, 13, 14]);

function translate(error: unknown, path: string): unknown {
  const code = sqliteCode(error);
  if (code === undefined || !OUT_OF_REACH.has(code)) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new UnavailableError(`The store sqlite:${path} cannot be used: ${message}`, "not-executed", { cause: error });
}
