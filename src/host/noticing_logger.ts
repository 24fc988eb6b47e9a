/**
 * A logger that has people told of what somebody should look at now.
 *
 * @module
 */
import { boundText } from "../core/describe_error.ts";
import type { LogFields, Logger } from "../core/log.ts";
import { KeyRefusedError } from "./rest_key.ts";
import type { Notifier } from "./types.ts";

/** Warnings that are no part of a host's ordinary life. Lost races, drains and a switched-off host are. */
const NOTICED_WARNINGS: ReadonlySet<string> = new Set([
  "database.out_of_reach",
  "event_loop.blocked",
  "host.attempt_not_recorded",
  "host.leftovers_not_cleared",
  "host.log_not_written",
  "host.work_folder_left",
]);
/** Told by whoever logs them, under a cause of its own. */
const TOLD_ALREADY: ReadonlySet<string> = new Set(["host.key_refused"]);
const MAX_FIELD = 500;

/** Wraps a logger: every error, and each warning of a short list, is also a notice, by its event. */
export function noticingLogger(logger: Logger, notifier: Notifier): Logger {
  const tell = (event: string, fields: LogFields = {}) => notifier.notify(event, describe(event, fields));
  return {
    debug: (event, fields) => logger.debug(event, fields),
    info: (event, fields) => logger.info(event, fields),
    warn(event, fields) {
      logger.warn(event, fields);
      if (NOTICED_WARNINGS.has(event) && !isKeyRefusal(fields)) tell(event, fields);
    },
    error(event, fields) {
      logger.error(event, fields);
      if (!TOLD_ALREADY.has(event)) tell(event, fields);
    },
  };
}

/** A claim or a renewal that failed as the key is refused: the key ring has told that, once. */
function isKeyRefusal({ error }: LogFields = {}): boolean {
  return String(error).includes(KeyRefusedError.name);
}

function describe(event: string, fields: LogFields): string {
  const lines = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}: ${boundText(String(value), MAX_FIELD)}`);
  return [event, ...lines].join("\n");
}
