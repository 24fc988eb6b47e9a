/**
 * Everything that is given bad input.
 *
 * @module
 */
import { flagTarget } from "./flag_target.ts";
import { hostConfigTarget } from "./host_config_target.ts";
import { httpTarget } from "./http_target.ts";
import { migrationTarget } from "./migration_target.ts";
import { ndjsonTarget } from "./ndjson_target.ts";
import { payloadTarget } from "./payload_target.ts";
import { restTarget } from "./rest_target.ts";
import type { Target } from "./target.ts";

/** All of them. */
// deno-lint-ignore no-explicit-any -- each has inputs of its own, which nobody but itself looks into.
export const TARGETS: readonly Target<any>[] = [
  payloadTarget,
  flagTarget,
  ndjsonTarget,
  httpTarget,
  restTarget,
  hostConfigTarget,
  migrationTarget,
];
