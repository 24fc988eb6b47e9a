/**
 * What a Postgres storage runs its statements on. Two shapes of work exist, and no other (no transaction object is ever
 * handed out: the driver loses it when a backend dies).
 *
 * @module
 */

/**
 * A parameter of a statement. Whatever is not plain travels as text with a cast in the statement:
 *
 * - JSON: the encoded text for `$1::jsonb` (the pool sends it as it is; it is not encoded a second time). A JSON null is
 *   the text `null`; `null` itself is SQL's.
 * - A batch of rows: one JSON text, `from jsonb_to_recordset($1::jsonb) as r(id uuid, …)`.
 * - An array: an array literal, `any($1::uuid[])` with `{a,b}`, or `jsonb_array_elements_text($1::jsonb)` where elements
 *   may hold any text.
 * - A time: ISO text for `$1::timestamptz`, microseconds kept.
 */
export type Param = string | number | boolean | null;

/**
 * One row, by column name. Times come as `Date` (milliseconds: select `::text` where a time is a key), `int8` and
 * `numeric` as text, `jsonb` parsed, arrays as the text of their literal (select `to_jsonb(…)` or `array_to_json(…)`
 * instead).
 */
export type Row = Record<string, unknown>;

/** Options of one statement. */
export interface StatementOptions {
  /**
   * Gives each row as an array, its values in the statement's order and each as in a `Row`; the caller casts. For the one
   * statement whose rows are many and wide: the driver's objects by name cost a fourth of reading them. Default false.
   */
  asValues?: boolean;
  /** Client-side deadline in milliseconds, the wait for a connection included. Default: the pool's. */
  deadlineMs?: number;
}

/** One area's database: statements on the system login, and on the runtime login inside one tenant. */
export interface Database {
  /**
   * Runs ONE auto-committed statement on the system login, without a tenant. Only the methods on the tenant-less list
   * (a house test holds it) may call this.
   *
   * @throws {UnavailableError} Out of reach or past the deadline; `outcome` says whether it may have taken effect.
   * @throws {ValidationError} A parameter the server refused as data (SQLSTATE class 22, 23514).
   * @throws {ConflictError} A unique or foreign key was violated (23505, 23503), or a serialisation failure (40001, 40P01).
   */
  system<R extends Row = Row>(sql: string, params: readonly Param[], options?: StatementOptions): Promise<R[]>;
  /**
   * Runs ONE statement as the runtime login inside one tenant: `begin · set_config('laneway.org_id') · statement ·
   * commit` pipelined on a connection of its own, one round trip. The statement must also condition on
   * `current_setting('laneway.org_id', true)`, so that on a cut connection it changes nothing.
   *
   * @throws As `system`; any doubt about the commit is `UnavailableError` with outcome `unknown`: read back.
   */
  tenant<R extends Row = Row>(
    orgId: string,
    sql: string,
    params: readonly Param[],
    options?: StatementOptions,
  ): Promise<R[]>;
}

/** The areas: schemas with their own migration chain and, if set, their own database. */
export type Area = "core" | "queue" | "activity";

/** One database an area. Areas without a URL of their own share one. */
export type Databases = Readonly<Record<Area, Database>>;
