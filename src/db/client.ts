/**
 * One client: one socket, one server process, one life. The driver's own reconnecting is what loses transactions and
 * wedges slots, so a client is given exactly one socket and never a second: what was cut stays cut, and whoever owns the
 * client makes a new one.
 *
 * @module
 */
import { parseTimestamp } from "./timestamps.ts";
import type net from "node:net";
import postgres from "postgres";
import type { Param, Row } from "./database.ts";
import { openSocket, type SocketTarget, splitTls, type TlsSettings } from "./socket.ts";
import { isConnectionDoubt, translateError } from "./sqlstate.ts";

/** How to open a client. */
export interface ClientOptions {
  /** Shown in `pg_stat_activity`. Default `laneway`. */
  applicationName?: string;
  /** How long opening may take, the handshake included, milliseconds. Default 5 000. */
  connectTimeoutMs?: number;
  /** Whether statements are prepared by name. Off behind a transaction-mode pooler, where they hang. Default true. */
  prepare?: boolean;
  /**
   * Whether plans keep to indexes in their order, which every statement of ours is written for. Plans are cached, and one
   * made while a table was empty scans and sorts it until the first statistics. Given with the start of the connection, so
   * not for a pooler. Default false.
   */
  indexPlans?: boolean;
  /** Gives up opening at once when it aborts; without effect on an open client. */
  signal?: AbortSignal;
  /** Called for each notification of a channel the client listens on. */
  onNotify?: (channel: string, payload: string) => void;
}

/** One statement of a pipeline. */
export interface PipelineStep {
  readonly sql: string;
  /** Without parameters the statement goes by the simple protocol, unprepared, and may be a script. */
  readonly params?: readonly Param[];
  /** As `StatementOptions.asValues`. */
  readonly asValues?: boolean;
}

/** How one step of a pipeline ended. */
export type StepResult =
  | { readonly ok: true; readonly rows: Row[]; readonly command: string | undefined; readonly retried: boolean }
  | { readonly ok: false; readonly error: unknown };

interface DriverQuery extends PromiseLike<Row[] & { command?: string }> {
  execute(): DriverQuery;
  values(): DriverQuery;
  readonly state?: { readonly pid: number | null; readonly secret: number | null } | null;
  readonly retried?: unknown;
}

// JSON and times travel as the text the caller wrote. The driver's own would encode JSON text a second time and cut
// microseconds off times.
const TYPES = {
  json: { to: 114, from: [114, 3802], serialize: (text: unknown) => text, parse: (text: string) => JSON.parse(text) },
  date: {
    to: 1184,
    from: [1082, 1114, 1184],
    serialize: (text: unknown) => text,
    parse: parseTimestamp,
  },
} as const;

/**
 * The settings of a connection whose plans keep to indexes, and are made once. Left to itself the server made a new plan for
 * each claim, as one that knows the limit looks cheaper: 170 of the 435 us that the claim of one item took. Compiling a
 * plan takes longer than any of them runs.
 */
export const INDEX_PLANS = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
} as const;

const CANCEL_MS = 1_000;

// The driver takes a statement without parameters for a script unless told otherwise.
const PREPARED: postgres.UnsafeQueryOptions & { simple: boolean } = { prepare: true, simple: false };

/** An open connection to one server process. */
export class PostgresClient {
  readonly openedAtMs = performance.now();
  readonly #sql: postgres.Sql;
  readonly #closed = Promise.withResolvers<void>();
  #socket: net.Socket | undefined;
  #target: SocketTarget | undefined;
  #backend: DriverQuery["state"];
  readonly #tls: TlsSettings;
  #gone = false;
  #ended: Promise<void> | undefined;

  private constructor(url: string, options: ClientOptions) {
    const timeoutMs = options.connectTimeoutMs ?? 5_000;
    const split = splitTls(url);
    this.#tls = split.tls;
    const settings = {
      // We secure the socket before the driver gets it.
      ssl: false,
      max: 1,
      fetch_types: false,
      connect_timeout: timeoutMs / 1_000,
      max_lifetime: null,
      idle_timeout: null,
      prepare: options.prepare ?? true,
      onnotice: () => {},
      onnotify: options.onNotify,
      // The driver may take our listeners off the socket; this it calls in any case.
      onclose: () => this.#cut(),
      types: TYPES,
      // Times are read as ISO text, whatever the database's or the login's own style is. Poolers pass these two on.
      connection: {
        application_name: options.applicationName ?? "laneway",
        DateStyle: "ISO",
        TimeZone: "UTC",
        ...(options.indexPlans ? INDEX_PLANS : {}),
      },
      socket: (target: SocketTarget) => this.#connect(target, timeoutMs, options.signal),
    };
    // The driver's types know neither `socket` nor `onnotify` nor null limits; its code does.
    this.#sql = postgres(split.url, settings as unknown as postgres.Options<Record<string, never>>);
  }

  /**
   * Opens a client and waits until the server has let it in.
   *
   * @throws {UnavailableError} Outcome `not-executed`, with what stood in the way.
   * @throws {SettingsError} The URL's TLS parameters cannot be used.
   */
  static async open(url: string, options: ClientOptions = {}): Promise<PostgresClient> {
    let client: PostgresClient | undefined;
    const giveUp = () => client?.destroy();
    options.signal?.addEventListener("abort", giveUp, { once: true });
    try {
      client = new PostgresClient(url, options);
      const probe = client.#sql.unsafe("select 1") as unknown as DriverQuery;
      await probe.execute();
      client.#backend = probe.state;
      return client;
    } catch (error) {
      client?.destroy();
      throw translateError(error, { opening: true });
    } finally {
      options.signal?.removeEventListener("abort", giveUp);
    }
  }

  /** Whether the connection is cut or ended; it never comes back. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Resolves when the connection is cut or ended. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** The server process's id. */
  get pid(): number {
    return this.#backend?.pid ?? 0;
  }

  /**
   * Sends all steps at once and waits until each is answered, or the connection is gone (then what was not answered is
   * an error). Never rejects. The caller must not start another pipeline before this one settled.
   */
  async pipeline(steps: readonly PipelineStep[]): Promise<StepResult[]> {
    const queries = steps.map((step) => {
      const query = (step.params === undefined
        ? this.#sql.unsafe(step.sql)
        : this.#sql.unsafe(step.sql, [...step.params], PREPARED)) as unknown as DriverQuery;
      return (step.asValues === true ? query.values() : query).execute();
    });
    if (this.#gone) this.destroy();
    const settled = await Promise.allSettled(queries);
    return settled.map((result, i) =>
      result.status === "fulfilled"
        ? {
          ok: true,
          rows: [...result.value],
          command: result.value.command,
          retried: queries[i]?.retried !== undefined,
        }
        : { ok: false, error: result.reason }
    );
  }

  /**
   * Runs one statement, without a deadline of its own. For owners of a client of their own: migrator, listener, tests.
   *
   * @throws The error as `translateError` gives it; a doubt about the connection ends the client.
   */
  async query<R extends Row = Row>(sql: string, params: readonly Param[] = []): Promise<R[]> {
    return await this.#one({ sql, params }) as R[];
  }

  /** Runs a script of several statements as one implicit transaction: all of it lands, or nothing. */
  async script(sql: string): Promise<void> {
    await this.#one({ sql });
  }

  /** Asks the server to cancel what this client runs. Best effort: resolves whatever comes of it, within a second. */
  async cancel(): Promise<void> {
    const { pid, secret } = this.#backend ?? {};
    if (typeof pid !== "number" || typeof secret !== "number" || this.#target === undefined) return;
    const message = new DataView(new ArrayBuffer(16));
    message.setInt32(0, 16);
    message.setInt32(4, 80_877_102);
    message.setInt32(8, pid);
    message.setUint32(12, secret >>> 0);
    const untilMs = performance.now() + CANCEL_MS;
    try {
      const socket = await openSocket(this.#target, { tls: this.#tls, timeoutMs: CANCEL_MS });
      const done = Promise.withResolvers<void>();
      socket.once("close", () => done.resolve());
      socket.once("error", () => done.resolve());
      const timer = setTimeout(() => done.resolve(), untilMs - performance.now());
      socket.resume();
      socket.write(new Uint8Array(message.buffer));
      // The server closes the connection when it has passed the request on.
      await done.promise;
      clearTimeout(timer);
      socket.destroy();
    } catch {
      // The server is out of reach: there is nobody to ask.
    }
  }

  /** Cuts the connection now. Whatever is in flight is rejected. */
  destroy(): void {
    this.#end(0);
    this.#socket?.destroy();
    this.#lost();
  }

  /** Takes leave of the server and waits for the connection to close, at most `timeoutMs`; then cuts it. */
  async close(timeoutMs = 1_000): Promise<void> {
    const farewell = this.#end(timeoutMs / 1_000);
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([
      Promise.all([farewell, this.#socket === undefined ? undefined : this.closed]),
      new Promise((resolve) => timer = setTimeout(resolve, timeoutMs)),
    ]);
    clearTimeout(timer);
    this.destroy();
  }

  async #one(step: PipelineStep): Promise<Row[]> {
    const [result] = await this.pipeline([step]);
    if (result?.ok) return result.rows;
    if (isConnectionDoubt(result?.error)) this.destroy();
    throw translateError(result?.error);
  }

  async #connect(target: SocketTarget, timeoutMs: number, signal?: AbortSignal): Promise<net.Socket> {
    // A second call is the driver reconnecting by itself, which could run half a unit outside its transaction.
    if (this.#target !== undefined || this.#gone) {
      throw Object.assign(new Error("the connection is closed"), { code: "CONNECTION_CLOSED" });
    }
    this.#target = target;
    const socket = await openSocket(target, { tls: this.#tls, timeoutMs, signal });
    this.#socket = socket;
    socket.once("error", () => this.#cut());
    socket.once("close", () => this.#cut());
    if (this.#gone) socket.destroy();
    return socket;
  }

  // After some errors the driver forgets to reject what was in flight; ending it does.
  #cut(): void {
    this.#lost();
    this.#end(0);
  }

  #lost(): void {
    this.#gone = true;
    this.#closed.resolve();
  }

  #end(timeoutSeconds: number): Promise<void> {
    this.#ended ??= this.#sql.end({ timeout: timeoutSeconds }).catch(() => {});
    return this.#ended;
  }
}
