/**
 * The one table of flags. Parsing, `LANEWAY_*` names, ranges, help, README's table, the sample environment file and
 * shell completions all come from here.
 *
 * @module
 */

/** A group of flags. */
export type FlagSection = "Work" | "Timing" | "Store" | "Retention" | "HTTP" | "Logs" | "Traces";

/** Groups flags in help and README, in this order. */
export const SECTIONS: readonly FlagSection[] = ["Work", "Timing", "Store", "Retention", "HTTP", "Logs", "Traces"];

interface FlagBase {
  /** The name without dashes; its environment variable follows from it (`envName`). */
  readonly flag: string;
  readonly section: FlagSection;
  readonly help: string;
  /** Values for which shells offer completions, where the type has none of its own. */
  readonly hints?: readonly string[];
}

/** One flag. Durations and sizes are written as people write them, in the table too. */
export type FlagSpec =
  & FlagBase
  & (
    | { readonly type: "text"; readonly default: string | null; readonly pattern: RegExp; readonly form: string }
    | { readonly type: "list"; readonly default: null; readonly pattern: RegExp; readonly form: string }
    | { readonly type: "int"; readonly default: number; readonly min: number; readonly max: number }
    | { readonly type: "duration" | "size"; readonly default: string; readonly min: string; readonly max: string }
    | { readonly type: "enum"; readonly default: string; readonly values: readonly string[] }
  );

/** Every flag, by the name its setting has in code. */
export const FLAGS = {
  lane: {
    flag: "lane",
    section: "Work",
    type: "text",
    default: "default",
    pattern: /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    form: "1 to 63 letters, digits, dots, dashes or underscores",
    help: "The lane whose items this worker takes.",
  },
  kinds: {
    flag: "kind",
    section: "Work",
    type: "list",
    default: null,
    pattern: /^[A-Z][A-Z0-9_]{0,62}$/,
    form: "kinds in upper snake case, such as NOTIFY_SHIPMENT, repeated or separated by commas",
    help: "The kinds to take; repeatable. Default: every kind this binary has a handler for.",
  },
  claimOrder: {
    flag: "claim-order",
    section: "Work",
    type: "enum",
    default: "due",
    values: ["due", "fair"],
    help:
      "At equal priority: due takes what is due first, fair gives each org its turn. fair needs migrate up --chain fair.",
  },
  capacity: {
    flag: "capacity",
    section: "Work",
    type: "int",
    default: 10,
    min: 1,
    max: 2_000,
    help: "How many items run at once. At most 20 for each connection of --pool-size.",
  },
  claimAheadMs: {
    flag: "claim-ahead",
    section: "Timing",
    type: "duration",
    default: "50ms",
    min: "0s",
    max: "1s",
    help:
      "How long an item claimed before a slot is free for it may be expected to wait; 0s claims for free slots alone.",
  },
  leaseMs: {
    flag: "lease",
    section: "Timing",
    type: "duration",
    default: "30s",
    min: "1s",
    max: "1h",
    help: "How long a claim holds without a renewal; it is renewed three times as often.",
  },
  pollMs: {
    flag: "poll",
    section: "Timing",
    type: "duration",
    default: "1s",
    min: "10ms",
    max: "10m",
    help: "How long an idle worker waits before it looks for work without having been told; see --idle-poll.",
  },
  idlePollMs: {
    flag: "idle-poll",
    section: "Timing",
    type: "duration",
    default: "30s",
    min: "10ms",
    max: "1h",
    help: "What the poll of an idle worker slows down to while notifications arrive; --poll again when they do not.",
  },
  heartbeatMs: {
    flag: "heartbeat",
    section: "Timing",
    type: "duration",
    default: "5s",
    min: "100ms",
    max: "5m",
    help: "The window of /healthz; every fourth heartbeat the worker tells the database that it lives.",
  },
  sweepMs: {
    flag: "sweep",
    section: "Timing",
    type: "duration",
    default: "10s",
    min: "100ms",
    max: "1h",
    help: "How often housekeeping runs: expired claims, the outbox; gauges a third, purges a sixth as often.",
  },
  drainGraceMs: {
    flag: "drain-grace",
    section: "Timing",
    type: "duration",
    default: "10s",
    min: "0s",
    max: "1h",
    help: "How long running items may finish after SIGTERM before they are handed back; 0s hands back at once.",
  },
  store: {
    flag: "store",
    section: "Store",
    type: "text",
    default: null,
    pattern: /^(memory|postgres|sqlite:(?!:memory:$)[^\0]+)$/,
    form: "memory, sqlite:PATH or postgres",
    hints: ["memory", "sqlite:", "postgres"],
    help: "memory, sqlite:PATH or postgres. Default: postgres when LANEWAY_DATABASE_URL is set, else it must be given.",
  },
  poolSize: {
    flag: "pool-size",
    section: "Store",
    type: "int",
    default: 10,
    min: 1,
    max: 100,
    help: "Connections of the runtime login, for statements inside one org.",
  },
  systemPoolSize: {
    flag: "system-pool-size",
    section: "Store",
    type: "int",
    default: 4,
    min: 1,
    max: 100,
    help: "Connections of the system login, for claims, settlements and the sweep.",
  },
  pooler: {
    flag: "pooler",
    section: "Store",
    type: "enum",
    default: "none",
    values: ["none", "transaction"],
    help: "transaction behind a transaction-mode pooler: prepared statements are off.",
  },
  statementTimeoutMs: {
    flag: "statement-timeout",
    section: "Store",
    type: "duration",
    default: "10s",
    min: "100ms",
    max: "10m",
    help: "The deadline of one statement, the wait for a connection included.",
  },
  sqliteSynchronous: {
    flag: "sqlite-synchronous",
    section: "Store",
    type: "enum",
    default: "full",
    values: ["full", "normal"],
    help:
      "full: what --store sqlite:PATH wrote survives a power cut. normal is faster: a crash loses nothing, a power cut the last commits.",
  },
  listen: {
    flag: "listen",
    section: "Store",
    type: "enum",
    default: "on",
    values: ["on", "off"],
    help:
      "Wakes on Postgres notifications; off leaves polling alone. Needs LANEWAY_LISTEN_DATABASE_URL behind a pooler.",
  },
  itemRetentionMs: {
    flag: "item-retention",
    section: "Retention",
    type: "duration",
    default: "7d",
    min: "0s",
    max: "3650d",
    help: "How long finished items are kept; 0s removes completed ones at once, dead letters at the next sweep.",
  },
  keyRetentionMs: {
    flag: "key-retention",
    section: "Retention",
    type: "duration",
    default: "7d",
    min: "1h",
    max: "3650d",
    help: "How long an idempotency key stays taken. At least --outbox-retention.",
  },
  outboxRetentionMs: {
    flag: "outbox-retention",
    section: "Retention",
    type: "duration",
    default: "1d",
    min: "0s",
    max: "3650d",
    help: "How long outbox rows that were handed on are kept.",
  },
  markerRetentionMs: {
    flag: "marker-retention",
    section: "Retention",
    type: "duration",
    default: "1d",
    min: "1m",
    max: "3650d",
    help: "How long the outcome of a request that must take effect once is replayed to its repeats.",
  },
  sessionIdleMs: {
    flag: "session-idle",
    section: "Retention",
    type: "duration",
    default: "7d",
    min: "1m",
    max: "3650d",
    help: "A session not used for this long is over.",
  },
  sessionLifetimeMs: {
    flag: "session-lifetime",
    section: "Retention",
    type: "duration",
    default: "30d",
    min: "1m",
    max: "3650d",
    help: "A session begun is over after this long, however much it is used.",
  },
  payloadLimitBytes: {
    flag: "payload-limit",
    section: "Retention",
    type: "size",
    default: "256KiB",
    min: "1KiB",
    max: "16MiB",
    help: "The largest payload that is accepted, encoded.",
  },
  http: {
    flag: "http",
    section: "HTTP",
    type: "enum",
    default: "on",
    values: ["on", "off"],
    help: "Serves /healthz, /livez, /readyz and /metrics.",
  },
  httpHost: {
    flag: "http-host",
    section: "HTTP",
    type: "text",
    default: "127.0.0.1",
    pattern: /^[A-Za-z0-9.:_-]{1,253}$/,
    form: "a host name or an address, such as 127.0.0.1 or 0.0.0.0",
    help: "The address to listen on; 0.0.0.0 for probes from outside the container.",
  },
  httpPort: {
    flag: "http-port",
    section: "HTTP",
    type: "int",
    default: 9464,
    min: 0,
    max: 65_535,
    help: "The port to listen on; 0 takes any free one and logs it.",
  },
  logLevel: {
    flag: "log-level",
    section: "Logs",
    type: "enum",
    default: "info",
    values: ["debug", "info", "warn", "error"],
    help: "The least severe level that is written.",
  },
  logFormat: {
    flag: "log-format",
    section: "Logs",
    type: "enum",
    default: "auto",
    values: ["auto", "json", "text"],
    help: "auto writes text on a terminal and one JSON line an event elsewhere.",
  },
  traces: {
    flag: "traces",
    section: "Traces",
    type: "enum",
    default: "off",
    values: ["on", "off"],
    help:
      "A span for each run, by Deno's own exporter to OTEL_EXPORTER_OTLP_ENDPOINT. From source also set OTEL_DENO=true.",
  },
} as const satisfies Readonly<Record<string, FlagSpec>>;

/** A flag's name in code. */
export type FlagKey = keyof typeof FLAGS;

/** What a flag of this entry parses to. */
export type ValueOf<F> = F extends { type: "int" | "duration" | "size" } ? number
  : F extends { type: "enum"; values: readonly (infer V)[] } ? V
  : F extends { type: "list" } ? readonly string[] | null
  : F extends { default: string } ? string
  : string | null;

/** The parsed value of every flag: durations in milliseconds, sizes in bytes. */
export type FlagValues = { readonly [K in FlagKey]: ValueOf<(typeof FLAGS)[K]> };

/** Every flag with its name in code, in table order. */
export const FLAG_ENTRIES: readonly (readonly [FlagKey, FlagSpec])[] = Object.entries(FLAGS) as [FlagKey, FlagSpec][];

/** The environment variable of a flag: `drain-grace` is `LANEWAY_DRAIN_GRACE`. */
export function envName(spec: Pick<FlagSpec, "flag">): string {
  return `LANEWAY_${spec.flag.toUpperCase().replaceAll("-", "_")}`;
}

/** What stands for a flag's value in help: `<duration>`. */
export function placeholder(spec: FlagSpec): string {
  if (spec.type === "enum") return `<${spec.values.join("|")}>`;
  if (spec.type === "int") return "<number>";
  if (spec.type === "duration") return "<duration>";
  if (spec.type === "size") return "<size>";
  return spec.type === "list" ? "<KIND,…>" : `<${spec.flag.split("-").at(-1)}>`;
}
