/**
 * A span a run, linked to the trace that caused the item and never its child: the item outlives the request. Without an
 * OpenTelemetry exporter the API is a no-op.
 *
 * @module
 */
import { type Link, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { describeError } from "../core/describe_error.ts";
import type { ClaimedItem } from "../work/types.ts";
import type { Verdict } from "./run.ts";

// Of a later version more may follow; ff is none, and neither is an id of zeros.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const tracer = trace.getTracer("laneway");

/** Runs `run` inside the item's span; a failing verdict marks the span. */
export function withSpan(claimed: ClaimedItem, run: () => Promise<Verdict>): Promise<Verdict> {
  const { item, ctx } = claimed;
  const link = linkOf(item.traceparent);
  const options = {
    root: true,
    kind: SpanKind.CONSUMER,
    links: link === null ? [] : [link],
    attributes: {
      "laneway.item.id": item.id,
      "laneway.item.kind": item.kind,
      "laneway.item.attempt": item.attempts,
      "laneway.org.id": ctx.orgId,
    },
  };
  return tracer.startActiveSpan(`work ${item.kind}`, options, ROOT_CONTEXT, async (span) => {
    try {
      const verdict = await run();
      span.setAttribute("laneway.run.outcome", verdict.type);
      if (verdict.type === "fail") {
        span.setStatus({ code: SpanStatusCode.ERROR, message: describeError(verdict.error) });
      }
      return verdict;
    } finally {
      span.end();
    }
  });
}

/**
 * Whether spans lead anywhere: only a process started with `OTEL_DENO=true` records them, or a binary compiled so. Makes a
 * span that is never ended, and so never exported.
 */
export function isRecording(): boolean {
  return tracer.startSpan("probe", { root: true }, ROOT_CONTEXT).isRecording();
}

/** The link to a W3C traceparent; null when there is none or it is malformed. */
export function linkOf(traceparent: string | null): Link | null {
  const match = traceparent === null ? null : TRACEPARENT.exec(traceparent);
  const [, traceId, spanId, flags] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { context: { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true } };
}
