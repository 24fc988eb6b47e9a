/**
 * `check --health`: what a container's health check calls, so that the image needs no other program.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { reachableHost } from "../runtime/http.ts";
import type { Settings } from "../runtime/settings.ts";
import { UsageError } from "../runtime/usage_error.ts";
import type { CliIo } from "./io.ts";

const ASK_MS = 3_000;

/**
 * Asks the running worker's `/healthz`, or `/livez`: 0 when it is healthy, 1 when it is not or does not answer.
 *
 * @throws {UsageError} HTTP is off or its port is any free one, so there is nothing to ask.
 */
export async function askHealth(
  settings: Settings,
  io: Pick<CliIo, "print">,
  path: "/healthz" | "/livez" = "/healthz",
): Promise<number> {
  if (settings.http === "off") throw new UsageError("Cannot ask for health as --http is off");
  if (settings.httpPort === 0) {
    throw new UsageError("Cannot ask for health with --http-port 0: give the port the worker listens on");
  }
  const host = reachableHost(settings.httpHost);
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${settings.httpPort}${path}`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ASK_MS), redirect: "error" });
    const body = await response.json() as { reasons?: unknown };
    const reasons = Array.isArray(body.reasons) ? body.reasons.map(String) : [];
    io.print(
      response.ok
        ? (path === "/livez" ? "alive" : "healthy")
        : `not healthy: ${reasons.join("; ") || `status ${response.status}`}`,
    );
    return response.ok ? 0 : 1;
  } catch (error) {
    io.print(`not healthy: ${url} does not answer (${describeError(error)})`);
    return 1;
  }
}
