import assert from "node:assert/strict";
import { type MetricName, METRICS, type MetricSpec } from "./metrics.ts";
import { createMetrics, PROCESS_METRICS } from "./prom_metrics.ts";

Deno.test("text() holds every metric of the catalogue and of the process", async () => {
  const text = await createMetrics().text();
  for (const name of [...Object.keys(METRICS), ...Object.keys(PROCESS_METRICS)]) {
    assert.match(text, new RegExp(`^# TYPE ${name} `, "m"));
  }
});

Deno.test("every series without labels exists from the start, at 0", async () => {
  const text = await createMetrics().text();
  for (const [name, spec] of Object.entries(METRICS) as [string, MetricSpec][]) {
    if (spec.labels.length > 0) continue;
    assert.match(text, new RegExp(`^${name}${spec.type === "histogram" ? "_count" : ""} 0$`, "m"));
  }
});

Deno.test("count, set and observe show in the text", async () => {
  const metrics = createMetrics();
  metrics.count("laneway_items_claimed_total", { kind: "A", lane: "default" }, 3);
  metrics.set("laneway_capacity", 10);
  metrics.observe("laneway_start_latency_seconds", 0.003, { kind: "A" });
  const text = await metrics.text();
  assert.match(text, /laneway_items_claimed_total\{kind="A",lane="default"\} 3/);
  assert.match(text, /^laneway_capacity 10$/m);
  assert.match(text, /laneway_start_latency_seconds_bucket\{le="0.005",kind="A"\} 1/);
});

Deno.test("a series whose bearer is gone is dropped, and the others stay", async () => {
  const metrics = createMetrics();
  for (const host of ["a", "b"]) metrics.set("laneway_host_in_flight", 2, { host });
  metrics.drop?.("laneway_host_in_flight", { host: "a" });
  metrics.drop?.("laneway_host_in_flight", { host: "never" });
  assert.doesNotMatch(await metrics.text(), /host="(a|never)"/);
  metrics.set("laneway_host_in_flight", 1, { host: "a" });
  const text = await metrics.text();
  assert.match(text, /^laneway_host_in_flight\{host="b"\} 2$/m);
  assert.match(text, /^laneway_host_in_flight\{host="a"\} 1$/m);
});

Deno.test("a misuse fails nothing and is told once for each metric", () => {
  const told: MetricName[] = [];
  const metrics = createMetrics({ onMisuse: (name) => told.push(name) });
  for (let i = 0; i < 3; i++) metrics.count("laneway_items_claimed_total", { org: "x" });
  metrics.observe("laneway_capacity", 1);
  assert.deepEqual(told, ["laneway_items_claimed_total", "laneway_capacity"]);
});

Deno.test("process metrics need no permission and say something", { permissions: "none" }, async () => {
  const text = await createMetrics().text();
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  assert.ok(value("process_resident_memory_bytes") > 1e6);
  assert.ok(value("process_cpu_seconds_total") > 0);
  assert.ok(Math.abs(value("process_start_time_seconds") - Date.now() / 1_000) < 3_600);
});
