/**
 * Handles `NOOP`.
 *
 * @module
 */
import type { WorkHandler, WorkKind } from "../../mod.ts";
import { NOOP } from "./kind.ts";

/** Completes whatever it is given. Repeating it changes nothing, so it needs no manager. */
export class NoopHandler implements WorkHandler {
  readonly kind: WorkKind = NOOP;

  handle(): void {}
}
