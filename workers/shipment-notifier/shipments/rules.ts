/**
 * The pure rules of shipments: what a new one must look like.
 *
 * @module
 */
import * as z from "zod";
import { staggeredResume, type StaggerPolicy, ValidationError } from "../../../mod.ts";
import { hostOf } from "../endpoints/rules.ts";
import type { DueParked, NewShipment } from "./types.ts";

const TRACKING_NUMBER = /^[A-Za-z0-9](?:[A-Za-z0-9 -]{2,38})[A-Za-z0-9]$/;
const LANE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
// deno-lint-ignore no-control-regex -- NUL is no text in Postgres, and the others have no place in a name.
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Text as a name holds it: well-formed, without control characters, `max` characters at most, not blank. */
function nameText(max: number): z.ZodType<string> {
  return z.string().max(max, `must have at most ${max} characters`)
    .refine((text) => text.trim() !== "", "must not be blank")
    .refine((text) => text.isWellFormed(), "must not hold a lone surrogate")
    .refine((text) => !CONTROL.test(text), "must not hold a control character");
}

const NEW_SHIPMENT: z.ZodType<NewShipment> = z.strictObject({
  id: z.guid("must be a uuid").transform((id) => id.toLowerCase()).optional(),
  carrier: nameText(60),
  trackingNumber: z.string().regex(TRACKING_NUMBER, "must be 4 to 40 letters, digits, dashes or spaces"),
  recipientName: nameText(200),
  destination: nameText(200),
  webhookUrl: z.string().max(2_000, "must have at most 2000 characters")
    .refine(isWebhookUrl, "must be an http or https URL without user, password and fragment"),
  lane: z.string().regex(LANE, "must be 1 to 63 letters, digits, dots, dashes or underscores").optional(),
});

/**
 * Checks a new shipment, whatever it is. Returns it with its id in lower case.
 *
 * @throws {ValidationError} Naming the first field that does not fit, never showing its value.
 */
export function checkNewShipment(shipment: unknown): NewShipment {
  const parsed = NEW_SHIPMENT.safeParse(shipment);
  if (parsed.success) return parsed.data;
  // A misspelled field is the cause, the missing one its effect: tell the cause.
  const { issues } = parsed.error;
  const issue = issues.find((one) => one.code === "unrecognized_keys") ?? issues[0];
  const field = issue?.path.join(".") || "shipment";
  throw new ValidationError(field, `Cannot use ${field}: ${explain(issue, shipment)}`);
}

/** Why a value does not fit, in plain words: a field that is not there is missing, whatever zod expected of it. */
export function explain(issue: z.core.$ZodIssue | undefined, whole: unknown): string {
  if (issue?.code !== "invalid_type") return issue?.message ?? "it does not fit";
  const found = issue.path.reduce<unknown>(
    (at, part) => (at as Record<PropertyKey, unknown> | undefined)?.[part],
    whole,
  );
  return found === undefined ? "it is missing" : `it must be ${issue.expected === "string" ? "text" : issue.expected}`;
}

/** Whether a notification can be posted there. */
export function isWebhookUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" &&
    url.hash === "" && url.hostname !== "";
}

/** What becomes of one parked shipment whose time has come. */
export interface ResumePlan {
  readonly due: DueParked;
  /** How long after the resume its item begins, milliseconds; null when it waits on. */
  readonly startMs: number | null;
  /** How much longer it waits, milliseconds; 0 when it does not. */
  readonly postponeMs: number;
}

/** How resuming is planned. */
export interface ResumeOptions {
  /** How far apart shipments of one host begin. */
  readonly stagger: StaggerPolicy;
  /** How much longer those wait whose endpoint another one of them goes to try, milliseconds. */
  readonly probeHoldMs: number;
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * Plans the resume of shipments that are due, the longest due first. While an endpoint is down one of its shipments goes,
 * once it may be tried, and the others wait on; those of an endpoint that is up, or of none, go one after the other.
 */
export function planResume(dues: readonly DueParked[], options: ResumeOptions): ResumePlan[] {
  const probed = new Set<string>();
  const places = new Map<string, number>();
  return dues.map((due) => {
    const host = due.host ?? hostOf(due.shipment.webhookUrl);
    const wait = (postponeMs: number) => ({ due, startMs: null, postponeMs: Math.ceil(postponeMs) });
    if (due.probeInMs === null) {
      const place = places.get(host) ?? 0;
      places.set(host, place + 1);
      return { due, startMs: staggeredResume(place, options.stagger, options.random()), postponeMs: 0 };
    }
    if (due.probeInMs > 0) return wait(due.probeInMs);
    if (probed.has(host)) return wait(options.probeHoldMs);
    probed.add(host);
    return { due, startMs: 0, postponeMs: 0 };
  });
}
