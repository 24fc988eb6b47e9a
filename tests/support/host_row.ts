/**
 * A host's row as its tests begin with: one kind, one window by day.
 *
 * @module
 */
import type { HostRow } from "../../src/host/types.ts";

/** A time within its window. */
export const NOON: number = Date.parse("2026-06-02T12:00:00Z");

/** The row, on. */
export const ROW: HostRow = {
  name: "wsl1",
  enabled: true,
  orgIds: ["a"],
  kinds: ["DEV_ISSUE"],
  weights: ["light"],
  priorityFloor: 5,
  lane: "default",
  windows: [{ name: "day", timeZone: "UTC", days: [], from: "08:00", to: "18:00", maxInFlight: 2, weights: null }],
  lastHeartbeatAt: null,
  currentWorkers: 0,
};
