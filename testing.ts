/**
 * The contract suites: what every storage must do, as functions that register tests. For authors of storages; `mod.ts`
 * itself reaches no test code.
 *
 * @module
 */
export { type Cases, contractSuite, type Harness } from "./tests/contracts/contract.ts";
export { type AuditHarness, testAuditStorage } from "./tests/contracts/audit_storage.ts";
export { type CacheUnderTest, testCache } from "./tests/contracts/cache.ts";
export { type IdempotencyHarness, testIdempotencyStorage } from "./tests/contracts/idempotency_storage.ts";
export { type OutboxHarness, testOutboxStorage } from "./tests/contracts/outbox_storage.ts";
export { type TenancyHarness, testTenancyStorage } from "./tests/contracts/tenancy_storage.ts";
export { testTopics, type TopicsPair } from "./tests/contracts/topics.ts";
export { testWorkStorage, type WorkHarness } from "./tests/contracts/work_storage.ts";
