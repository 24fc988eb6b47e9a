/**
 * Metrics over prom-client, from the catalogue in `metrics.ts`, in a registry of their own.
 *
 * @module
 */
import process from "node:process";
import { setImmediate } from "node:timers";
import { Counter, Gauge, type Metric, Registry } from "prom-client";
import { type MetricName, METRICS, type Metrics, type MetricSpec } from "./metrics.ts";
import { HistogramMetric, ValueMetric } from "./metric_series.ts";

/** Metrics that can be scraped. */
export interface ScrapableMetrics extends Metrics {
  /** The exposition text of every metric. */
  text(): Promise<string>;
  /** The content type `text` is to be served with. */
  readonly contentType: string;
}

/** Metrics of the process itself, which no catalogue entry sets. README's table lists them after the catalogue. */
export const PROCESS_METRICS = {
  process_resident_memory_bytes: "Resident memory.",
  process_heap_bytes: "Memory of the JavaScript heap in use.",
  process_cpu_seconds_total: "Processor time used, user and system.",
  process_start_time_seconds: "When the process started, seconds since the epoch.",
  laneway_event_loop_lag_seconds: "How long a callback that was due at once had to wait, measured at the scrape.",
} as const;

/** How metrics are made. */
export interface MetricsOptions {
  /** Called with the first misuse of each metric (a label the catalogue does not have). Default nothing. */
  readonly onMisuse?: (name: MetricName, error: unknown) => void;
}

/**
 * Makes the metrics of one process. Series without labels exist from the start, at 0, so that an alarm on them never
 * meets "no data". A misuse is dropped and told once: a metric never fails the work it counts.
 */
export function createMetrics(options: MetricsOptions = {}): ScrapableMetrics {
  const registry = new Registry();
  const counters = new Map<string, ValueMetric>();
  const gauges = new Map<string, ValueMetric>();
  const histograms = new Map<string, HistogramMetric>();
  for (const [name, spec] of Object.entries(METRICS) as [MetricName, MetricSpec][]) {
    if (spec.type === "counter") register(registry, counters, new ValueMetric(name, spec));
    else if (spec.type === "gauge") register(registry, gauges, new ValueMetric(name, spec));
    else register(registry, histograms, new HistogramMetric(name, spec));
  }
  addProcessMetrics(registry);
  const told = new Set<string>();
  function write(name: MetricName, change: () => void): void {
    try {
      change();
    } catch (error) {
      if (told.has(name)) return;
      told.add(name);
      options.onMisuse?.(name, error);
    }
  }
  return {
    count: (name, labels = {}, by = 1) => write(name, () => find(counters, name).add(labels, by)),
    set: (name, value, labels = {}) => write(name, () => find(gauges, name).set(labels, value)),
    drop: (name, labels) => write(name, () => find(gauges, name).drop(labels)),
    observe: (name, value, labels = {}) => write(name, () => find(histograms, name).observe(labels, value)),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function register<M extends { readonly name: string }>(registry: Registry, metrics: Map<string, M>, metric: M): void {
  metrics.set(metric.name, metric);
  // Of a metric the registry asks its name and `get()`.
  registry.registerMetric(metric as unknown as Metric);
}

function find<M>(metrics: ReadonlyMap<string, M>, name: MetricName): M {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`${name} is a ${METRICS[name].type} and cannot be written like this`);
  return metric;
}

// prom-client's own default metrics read /proc, which Deno counts as every permission; these need none.
function addProcessMetrics(registry: Registry): void {
  const registers = [registry];
  const gauge = (name: keyof typeof PROCESS_METRICS, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help: PROCESS_METRICS[name],
      registers,
      async collect() {
        this.set(await read());
      },
    });
  gauge("process_resident_memory_bytes", () => Deno.memoryUsage().rss);
  gauge("process_heap_bytes", () => Deno.memoryUsage().heapUsed);
  const startedAt = (Date.now() - performance.now()) / 1_000;
  gauge("process_start_time_seconds", () => startedAt);
  gauge("laneway_event_loop_lag_seconds", measureLag);
  new Counter({
    name: "process_cpu_seconds_total",
    help: PROCESS_METRICS.process_cpu_seconds_total,
    registers,
    collect() {
      const used = process.cpuUsage();
      this.reset();
      this.inc((used.user + used.system) / 1e6);
    },
  });
}

function measureLag(): Promise<number> {
  const startedMs = performance.now();
  return new Promise((resolve) => setImmediate(() => resolve((performance.now() - startedMs) / 1_000)));
}
