/**
 * Names: what a worker, its kind, its lane and its record may be called, and how one name reads in each place.
 *
 * @module
 */

/** What the command line asks for. */
export interface NewWorker {
  /** Kebab case: the folder, the binary, the image. */
  readonly worker: string;
  /** Upper snake case. */
  readonly kind: string;
  readonly lane: string;
  /** What its items are about, one of it, in snake case. */
  readonly record: string;
}

/** A wrong argument; the message names it, its value, the rule and an example. */
export class BadName extends Error {}

const WORKER = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const KIND = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;
const LANE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const RECORD = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;

/** Longest name of a worker: with its prefix it names cloud resources, which have 63 characters at most. */
const MAX_WORKER = 40;
const MAX_KIND = 63;
const MAX_RECORD = 40;

// Schemas of the house, of Postgres and of what a person would not expect to find a table of theirs in.
const RESERVED = [
  ...["core", "queue", "activity", "fair", "public", "information_schema", "audit", "idempotency", "outbox", "tenancy"],
  ...["work", "org", "user", "session", "host", "attempt", "item", "key"],
];

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** What TypeScript reads as something else where a variable is named. */
const LANGUAGE = words(`
  any arguments async await break case catch class const continue debugger default delete do else enum eval export extends
  false finally for function if implements import in infer instanceof interface is let namespace never new null object package
  private protected public return static super switch this throw true try type typeof undefined unknown using var void while
  with yield`);

/** Names that the made code has for other things: with a record of one of them it would not compile. Each was tried. */
export const MADE: readonly string[] = words(`
  answer_or_lost assert at begun call check_new claim_one clear_timeout container ctx database date deferral effect either
  either_of ended error field first found gone id insert issue lane limit logger lost manager marked meanwhile member new_id
  new_outbox_row option org_id org_name outcome parsed part promise rctx read read_line record reference request_context row
  run run_of runtime_of second set_timeout test text timeout_ms timer topic tries until value version_of world`);

/** Checks a worker's name. @throws {BadName} It breaks the rule. */
export function checkWorker(name: string): string {
  if (WORKER.test(name) && name.length <= MAX_WORKER) return name;
  throw new BadName(
    `Cannot use worker name ${
      shown(name)
    }: it must be lower-case words with dashes between them, at most ${MAX_WORKER} ` +
      "characters, such as invoice-mailer",
  );
}

/** Checks a kind. @throws {BadName} It breaks the rule. */
export function checkKind(kind: string): string {
  if (KIND.test(kind) && kind.length <= MAX_KIND) return kind;
  throw new BadName(
    `Cannot use work kind ${
      shown(kind)
    }: it must be upper-case words with underscores between them, at most ${MAX_KIND} ` +
      "characters, a verb first, such as MAIL_INVOICE",
  );
}

/** Checks a lane. @throws {BadName} It breaks the rule. */
export function checkLane(lane: string): string {
  if (LANE.test(lane)) return lane;
  throw new BadName(
    `Cannot use --lane ${shown(lane)}: it must be 1 to 63 letters, digits, dots, dashes or underscores, such as mail`,
  );
}

/**
 * Checks a record's name, or takes it from the kind: `MAIL_INVOICE` is about an `invoice`, `REINDEX` about a
 * `reindex_job`.
 *
 * @throws {BadName} It breaks the rule, or the house has the name already.
 */
export function checkRecord(kind: string, record?: string): string {
  const [verb = "", ...noun] = kind.toLowerCase().split("_");
  const name = record ?? (noun.length === 0 ? `${verb}_job` : noun.join("_"));
  const fix = record === undefined ? `give another one, such as ${anotherRecord(kind)}` : "such as --record invoice";
  if (!RECORD.test(name) || name.length > MAX_RECORD) {
    throw new BadName(
      `Cannot name the record ${shown(name)}: it must be lower-case words with underscores between them, at most ` +
        `${MAX_RECORD} characters, one of them (not many): ${fix}`,
    );
  }
  // Only of a kind's words: who gives --record has said what one of it is called.
  if (record === undefined && name !== singularOf(name)) {
    throw new BadName(
      `Cannot name the record ${shown(name)}: it is the name of one of it, not of many: give --record ${
        singularOf(name)
      }, or --record ${name} if that is one`,
    );
  }
  if (LANGUAGE.includes(camelOf(name)) || MADE.includes(name)) {
    throw new BadName(
      `Cannot name the record ${shown(name)}: the code that is made has that name for another thing: ${fix}`,
    );
  }
  if (RESERVED.includes(name) || RESERVED.includes(pluralOf(name)) || name.startsWith("pg_")) {
    throw new BadName(`Cannot name the record ${shown(name)}: that name is taken by the house: ${fix}`);
  }
  return name;
}

/** Names another record for a kind, in the form of the command line. */
export function anotherRecord(kind: string): string {
  const request = `${kind.toLowerCase().split("_")[0]}_request`;
  return `--record ${request.length <= MAX_RECORD ? request : "request"}`;
}

/** One of what looks like many; what is one already stays: `status`, `address`, `analysis`. */
function singularOf(record: string): string {
  if (/[^aeiou]ies$/.test(record)) return `${record.slice(0, -3)}y`;
  if (/(?:ss|x|z|ch|sh)es$/.test(record)) return record.slice(0, -2);
  return /[^sui]s$/.test(record) ? record.slice(0, -1) : record;
}

/** `a` or `an`, by how the word sounds: an hour, a user. */
function articleOf(word: string): string {
  if (/^(?:heir|honest|honou?r|hour)/.test(word)) return "an";
  return /^(?:[aeio]|u(?!ni[^mn]|s[aeu]|til|r[aeioul]))(?!uro|ne(?:_|$)|nce)/.test(word) ? "an" : "a";
}

/** More than one of it. Of the last word alone: `order_line` is `order_lines`. */
export function pluralOf(record: string): string {
  if (/[^aeiou]y$/.test(record)) return `${record.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(record) ? `${record}es` : `${record}s`;
}

/** `order_line` as `OrderLine`. */
export function pascalOf(snake: string): string {
  return snake.toLowerCase().split(/[_-]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

/** `order_line` as `orderLine`. */
export function camelOf(snake: string): string {
  const pascal = pascalOf(snake);
  return pascal.charAt(0).toLowerCase() + pascal.slice(1);
}

/** The record's forms, from the one the template has to the one wanted, for one of it or for many. */
function formsOf(record: string): readonly string[] {
  return [
    record.toUpperCase(),
    pascalOf(record),
    camelOf(record),
    record,
    record.replaceAll("_", "-"),
    record.replaceAll("_", " "),
    sentenceOf(record),
  ];
}

function sentenceOf(record: string): string {
  const words = record.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What the template is called. Of two words each, so that every form of a name can be told from every other. */
export const TEMPLATE: NewWorker = {
  worker: "sample-worker",
  kind: "HANDLE_SAMPLE_RECORD",
  lane: "sample-lane",
  record: "sample_record",
};

/** Renames the template's text, or the path of one of its files. In one pass, so that no name is renamed twice. */
export function rename(text: string, to: NewWorker): string {
  const names = new Map<string, string>([
    ...zip(kindForms(TEMPLATE.kind), kindForms(to.kind)),
    ...zip(formsOf(pluralOf(TEMPLATE.record)), formsOf(pluralOf(to.record))),
    ...zip(formsOf(TEMPLATE.record), formsOf(to.record)),
    [TEMPLATE.worker, to.worker],
    [pascalOf(TEMPLATE.worker), pascalOf(to.worker)],
    [TEMPLATE.lane, to.lane],
  ]);
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  const article = articleOf(to.record);
  return text
    .replaceAll(/\b([Aa]) (?=sample record\b)/g, (_, a: string) => `${a}${article.slice(1)} `)
    .replaceAll(new RegExp(longestFirst.join("|"), "g"), (name) => names.get(name) ?? name);
}

function zip(from: readonly string[], to: readonly string[]): [string, string][] {
  return from.map((name, i) => [name, to[i] ?? name]);
}

function kindForms(kind: string): readonly string[] {
  const snake = kind.toLowerCase();
  return [kind, pascalOf(snake), camelOf(snake), snake];
}

function shown(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
