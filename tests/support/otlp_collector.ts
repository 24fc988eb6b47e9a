/**
 * An OpenTelemetry collector in a test's hands: takes what a worker exports as JSON and shows its spans.
 *
 * @module
 */

/** One span, as far as the tests look at it. */
export interface CollectedSpan {
  /** The instrumentation that made it: `laneway` are ours, the rest is Deno's own. */
  readonly scope: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 0 unset, 1 ok, 2 error. */
  readonly status: { readonly code: number; readonly message: string };
}

/** A listening collector. */
export interface OtlpCollector {
  /** The environment of a process that exports to it, without delay. */
  readonly env: Readonly<Record<string, string>>;
  /** Every span so far. */
  readonly spans: readonly CollectedSpan[];
  /** Ours among them. */
  ours(): CollectedSpan[];
  stop(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface ExportedSpan {
  readonly name: string;
  readonly kind?: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: CollectedSpan["links"];
  readonly attributes?: readonly Attribute[];
  readonly status?: { readonly code?: number; readonly message?: string };
}

interface Export {
  readonly resourceSpans?: readonly {
    readonly scopeSpans?: readonly { readonly scope?: { name?: string }; readonly spans?: readonly ExportedSpan[] }[];
  }[];
}

/** Starts a collector on a free port. */
export function startCollector(): OtlpCollector {
  const spans: CollectedSpan[] = [];
  const abort = new AbortController();
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, signal: abort.signal };
  const server = Deno.serve(options, async (request) => {
    const text = await request.text();
    if (new URL(request.url).pathname === "/v1/traces") spans.push(...spansOf(JSON.parse(text) as Export));
    return Response.json({});
  });
  return {
    env: {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    },
    spans,
    ours: () => spans.filter(({ scope }) => scope === "laneway"),
    async stop() {
      abort.abort();
      await server.finished;
    },
  };
}

function spansOf({ resourceSpans = [] }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ scopeSpans = [] }) =>
    scopeSpans.flatMap(({ scope, spans = [] }) =>
      spans.map((span) => ({
        scope: scope?.name ?? "",
        name: span.name,
        kind: span.kind ?? 0,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? "",
        links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
        attributes: Object.fromEntries((span.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]])),
        status: { code: span.status?.code ?? 0, message: span.status?.message ?? "" },
      }))
    )
  );
}
