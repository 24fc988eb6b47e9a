import assert from "node:assert/strict";
import type { RequestContext } from "../core/context.ts";
import { createMetrics } from "../core/prom_metrics.ts";
import type { HostGauge } from "../work/storage.ts";
import { HostGauges } from "./host_gauges.ts";

async function exported(rounds: readonly (readonly HostGauge[] | Error)[]): Promise<string[]> {
  const metrics = createMetrics();
  const gauges = new HostGauges();
  const rctx = {} as RequestContext;
  for (const hosts of rounds) {
    const readHosts = () => hosts instanceof Error ? Promise.reject(hosts) : Promise.resolve([...hosts]);
    await gauges.update(rctx, { readHosts }, metrics).catch(() => {});
  }
  return (await metrics.text()).split("\n").filter((line) => line.startsWith("laneway_host_"));
}

const HOST: HostGauge = { name: "wsl1", enabled: true, heartbeatAgeSeconds: 12.5, inFlight: 2 };

Deno.test("each host's heartbeat age and what it holds are exported; no age of one that is off, also once it was on", async () => {
  const lap1 = { ...HOST, name: "lap1", inFlight: 0 };
  const off = { ...lap1, enabled: false };
  const both = ['laneway_host_in_flight{host="wsl1"} 2', 'laneway_host_in_flight{host="lap1"} 0'];
  const age = 'laneway_host_heartbeat_age_seconds{host="wsl1"} 12.5';
  assert.deepEqual(await exported([[HOST, off]]), [age, ...both]);
  assert.deepEqual(await exported([[HOST, lap1], [HOST, off]]), [age, ...both]);
});

Deno.test("a host that never beat has no age: nobody is told that it is fresh", async () => {
  assert.deepEqual(await exported([[{ ...HOST, heartbeatAgeSeconds: null }]]), [
    'laneway_host_in_flight{host="wsl1"} 2',
  ]);
});

Deno.test("a host whose row is gone leaves no gauge behind; a failed read changes nothing", async () => {
  const other = { ...HOST, name: "lap1" };
  assert.deepEqual(await exported([[HOST, other], [other], new Error("away")]), [
    'laneway_host_heartbeat_age_seconds{host="lap1"} 12.5',
    'laneway_host_in_flight{host="lap1"} 2',
  ]);
});
