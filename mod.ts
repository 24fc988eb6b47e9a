/**
 * What a worker's author imports. A program that imports this module alone can define kinds, records with storages and
 * migrations of their own, handlers, containers and commands, and run them as a worker.
 *
 * The contract suites for storages stand in `testing.ts`, so that no test code is reached from here.
 *
 * @example A worker with one kind
 * ```ts
 * import { defineKind, runWorker, type WorkHandler } from "./mod.ts";
 * import * as z from "zod";
 *
 * const GREET = defineKind("GREET", { schema: z.object({ name: z.string() }) });
 * const greeter: WorkHandler<{ name: string }> = {
 *   kind: GREET,
 *   handle: (_ctx, item) => console.log(`Hello ${item.payload.name}`),
 * };
 *
 * if (import.meta.main) {
 *   await runWorker({ name: "greeter", release: "1.0.0", kinds: [GREET], build: () => ({ handlers: [greeter] }) });
 * }
 * ```
 *
 * @module
 */

// Contexts, errors, ids, time, logs, metrics.
export type { AppContext, OpContext, RequestContext, Role, STAGE } from "./src/core/context.ts";
export {
  ConflictError,
  type ErrorCode,
  FinalError,
  invariant,
  InvariantError,
  LanewayError,
  NotFoundError,
  type Outcome,
  SettingsError,
  UnavailableError,
  ValidationError,
} from "./src/core/errors.ts";
export { describeError } from "./src/core/describe_error.ts";
export { derivedId, EMPTY_UUID, isUuid, newId } from "./src/core/ids.ts";
export { type Clock, systemClock } from "./src/core/clock.ts";
export { type Either, eitherOf } from "./src/core/either.ts";
export { FakeClock } from "./src/core/fake_clock.ts";
export { formatDuration, parseDuration } from "./src/core/duration.ts";
export { encodeJson, type Json } from "./src/core/json.ts";
export {
  checkPark,
  DEFAULT_STAGGER,
  MAX_PARK_CURSOR_BYTES,
  MAX_PARK_REASON,
  type Parking,
  type ParkRequest,
  staggeredResume,
  type StaggerPolicy,
} from "./src/core/park.ts";
export { type LogFields, type Logger, silentLogger } from "./src/core/log.ts";
export { type MetricLabels, type MetricName, METRICS, type Metrics, noMetrics } from "./src/core/metrics.ts";

// Topics and the cache.
export { MemoryTopics } from "./src/infra/memory_topics.ts";
export type { CarriedHint, TopicEvent, TopicName, TopicPayloads, Topics } from "./src/infra/topics.ts";
export { MemoryCache } from "./src/infra/memory_cache.ts";
export type { Cache, CacheScope } from "./src/infra/cache.ts";

// Databases and migrations.
export type { Area, Database, Databases, Param, Row, StatementOptions } from "./src/db/database.ts";
export type { Migration, MigrationChain } from "./src/db/chain.ts";
export type { MigrationStep } from "./src/db/migration_rules.ts";
export {
  SqliteDatabase,
  type SqliteOptions,
  type SqliteParam,
  type SqliteRow,
  type SqliteSession,
} from "./src/db/sqlite.ts";
export { migrateSqliteUp } from "./src/db/sqlite_migrator.ts";
export { TENANT_SQL } from "./src/db/tenant_sql.ts";
export { CHAINS, FAIR_CHAIN, OPTIONAL_CHAINS } from "./src/migrations.ts";
export { type Scope, TABLE_SCOPES, type TableScope } from "./src/scopes.ts";

// Audit, outbox, tenancy.
export type {
  ActivityEvent,
  AppendOutcome,
  AuditEntry,
  AuditManager,
  AuditStorage,
  NewEvent,
} from "./src/audit/types.ts";
export type {
  Attempt,
  BeginOptions,
  Begun,
  IdempotencyManager,
  IdempotencyStorage,
  Marker,
  MarkerBegin,
} from "./src/idempotency/types.ts";
export type { OutboxLag, OutboxRelay, OutboxRow, OutboxStorage, RelayCounts, RelaySink } from "./src/outbox/types.ts";
export {
  encodeOutboxRows,
  insertOutboxRows,
  newOutboxRow,
  type OutboxCteOptions,
  outboxInsertCte,
} from "./src/outbox/rows.ts";
export type {
  ClaimSubject,
  Membership,
  NewSession,
  Org,
  SecretHolder,
  Session,
  SessionInsert,
  SubjectState,
  TenancyManager,
  TenancyStorage,
  TicketInsert,
  User,
} from "./src/tenancy/types.ts";

// Work.
export {
  type ClaimedItem,
  type ClaimOrder,
  defer,
  Deferral,
  type EnqueueOptions,
  type EnqueueResult,
  type InsertOutcome,
  MANAGER_OWNED_FIELDS,
  type NewWorkItem,
  type Payload,
  type PayloadCheck,
  type PayloadSchema,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
  type WorkStatus,
} from "./src/work/types.ts";
export { DEFAULT_TIMEOUT_MS, defineKind, type KindOptions, parsePayload } from "./src/work/kinds.ts";
export {
  DEFAULT_RETRY,
  isExhausted,
  isStale,
  MAX_DELAY_MS,
  RANGES,
  RETRY_FLOOR_MS,
  retryDelay,
  type RetryPolicy,
} from "./src/work/rules.ts";
export type { ClaimOptions, FailOutcome, WorkManager } from "./src/work/manager.ts";
export type {
  CallerTransaction,
  ClaimRef,
  ClaimRequest,
  ClaimState,
  HostGauge,
  ItemInsert,
  KeyHolder,
  OwnedItem,
  Promotion,
  QueueGauges,
  RequeueCounts,
  Settlement,
  Unaudited,
  WorkStorage,
  WriteOutcome,
} from "./src/work/storage.ts";

// The wiring points.
export { createStorages, type Storages, type Store } from "./src/storages.ts";
export { createManagers, type ManagerOptions, type Managers } from "./src/managers.ts";

// A host runner's parts.
export { checkHost, type CheckHostOptions } from "./src/host/check_host.ts";
export { commandKinds, type CommandsAtOptions, openCommandsAt } from "./src/host/command/at_path.ts";
export type { Commands } from "./src/host/command/handler.ts";
export { type KeyClaims, readKeyClaims } from "./src/host/key_claims.ts";
export {
  type ChannelNotice,
  githubChannel,
  type GithubOptions,
  type NoticeChannel,
  type NoticeRequest,
  webhookChannel,
} from "./src/host/notice_channels.ts";
export { createNotifier, type NoticesOptions } from "./src/host/notices.ts";
export { noticingLogger } from "./src/host/noticing_logger.ts";
export { type OpenHost, openHost, type OpenHostOptions } from "./src/host/open_host.ts";
export type {
  AttemptOutcome,
  AttemptRecord,
  FailureReason,
  HostApi,
  HostBeat,
  HostRow,
  HostWindow,
  Notifier,
} from "./src/host/types.ts";

// Running a worker.
export {
  type Check,
  type CommandServeOptions,
  type OpenOptions,
  type OpenParts,
  type Parts,
  partsWithoutStore,
  type RunningWorker,
  versionOf,
  type WorkerCommand,
  type WorkerCommandCall,
  type WorkerCommandOption,
  type WorkerDefinition,
  type WorkerParts,
} from "./src/runtime/definition.ts";
export type { DrainReport, Probe, SweepStep, WorkerRuntime, WorkerRuntimeOptions } from "./src/runtime/types.ts";
export { createWorkerRuntime } from "./src/runtime/worker.ts";
export type { Settings, StoreChoice } from "./src/runtime/settings.ts";
export { type FlagKey, FLAGS, type FlagSection, type FlagValues, type ValueOf } from "./src/runtime/flags.ts";
export type { AreaUrls, DatabaseUrls } from "./src/runtime/database_urls.ts";
export { type DurationBounds, readEnvDuration } from "./src/runtime/env_duration.ts";
export { readSecretFile, type SecretFile } from "./src/runtime/secret_file.ts";
export { UsageError } from "./src/runtime/usage_error.ts";
export { runWorker } from "./src/cli/program.ts";
export { type InputLine, readLines } from "./src/cli/line_reader.ts";
