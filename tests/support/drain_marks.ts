/**
 * What runs of the mixed drain say of themselves: a file that every run appends to when it begins and when it ends, whoever
 * runs it, so that what was said survives a kill. Its order is the order of events.
 *
 * @module
 */
import type { Taker } from "./drain_groups.ts";

/** One line: of a run, or of the test. After `killed` no run of that taker's is alive; between `quiet` and `on` none begins. */
export interface Mark {
  readonly what: "start" | "end" | "killed" | "quiet" | "on";
  readonly who: Taker;
  /** Of a run; a dash else. */
  readonly item: string;
  /** Of a run: with the item it names one claim. */
  readonly fence: string;
}

/** The script that is every command, for `sh`: `$1` is the mode. */
export const SCRIPT = `#!/bin/sh
say() { echo "$1 $WHO $LANEWAY_ITEM_ID $LANEWAY_FENCE" >>"$MARKS"; }
trap 'say end; exit 143' TERM
say start
code=0
case "$1" in
  slow) sleep 0.2 ;;
  long) sleep 4 ;;
  escape) sleep 301 & setsid -f sleep 300; sleep 0.1 ;;
  once) [ "$LANEWAY_ATTEMPT" != 1 ] || code=1 ;;
  fail) code=1 ;;
  final) code=65 ;;
esac
say end
exit $code
`;

/** The command line of what a run in mode `escape` leaves behind, as `/proc` has it. */
export const ESCAPED = "sleep\u0000300\u0000";

/** The file, read as it grows. */
export class Marks {
  readonly path: string;
  readonly #all: Mark[] = [];
  readonly #file: Deno.FsFile;
  readonly #starts = new Map<Taker, number>();
  readonly #open = new Map<string, Mark>();
  #rest = "";

  constructor(path: string) {
    this.path = path;
    Deno.writeTextFileSync(path, "");
    this.#file = Deno.openSync(path);
  }

  /** All that was said. */
  get all(): readonly Mark[] {
    this.#read();
    return this.#all;
  }

  /** How many runs of a taker's have begun. */
  starts(who: Taker): number {
    this.#read();
    return this.#starts.get(who) ?? 0;
  }

  /** Runs of a taker's that have begun and not ended. */
  running(who: Taker): Mark[] {
    this.#read();
    return [...this.#open.values()].filter((mark) => mark.who === who);
  }

  /** Says something of the test's own. */
  note(what: "killed" | "quiet" | "on", who: Taker): void {
    Deno.writeTextFileSync(this.path, `${what} ${who} - -\n`, { append: true });
  }

  close(): void {
    this.#file.close();
  }

  #read(): void {
    const buffer = new Uint8Array(65_536);
    const decoder = new TextDecoder();
    for (let bytes = this.#file.readSync(buffer); bytes !== null; bytes = this.#file.readSync(buffer)) {
      this.#rest += decoder.decode(buffer.subarray(0, bytes));
    }
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const mark = markOf(line);
    this.#all.push(mark);
    if (mark.what === "start") {
      this.#starts.set(mark.who, (this.#starts.get(mark.who) ?? 0) + 1);
      this.#open.set(runOf(mark), mark);
    }
    if (mark.what === "end") this.#open.delete(runOf(mark));
    if (mark.what !== "killed") return;
    for (const [run, { who }] of this.#open) if (who === mark.who) this.#open.delete(run);
  }
}

/** Reads a line. */
export function markOf(line: string): Mark {
  const [what, who, item = "", fence = ""] = line.split(" ");
  return { what, who, item, fence } as Mark;
}

/** Names one run. */
export function runOf({ item, fence }: Mark): string {
  return `${item} ${fence}`;
}

/** What a file of marks tells once it is complete. */
export interface Replay {
  /** Runs that began while another of the same item went on, or began twice, in words. */
  readonly wrong: readonly string[];
  /** The most runs at once, by taker. */
  readonly most: Readonly<Record<Taker, number>>;
  /** Runs that were going on when their runner was killed. */
  readonly interrupted: readonly Mark[];
  /** Runs that began while their taker was to be quiet. */
  readonly whileQuiet: readonly Mark[];
}

/** Goes through marks in order. */
export function replay(marks: readonly Mark[]): Replay {
  const going = new Map<string, Mark>();
  const begun = new Set<string>();
  const quiet = new Set<Taker>();
  const most = { sql: 0, "host-a": 0, "host-b": 0 };
  const wrong: string[] = [];
  const interrupted: Mark[] = [];
  const whileQuiet: Mark[] = [];
  for (const mark of marks) {
    const { what, who, item } = mark;
    if (what === "start") {
      const other = going.get(item);
      if (other !== undefined) wrong.push(`${who} began ${runOf(mark)} while ${other.who} ran ${runOf(other)}`);
      if (begun.has(runOf(mark))) wrong.push(`${who} began ${runOf(mark)} again`);
      if (quiet.has(who)) whileQuiet.push(mark);
      begun.add(runOf(mark));
      going.set(item, mark);
      most[who] = Math.max(most[who], [...going.values()].filter((run) => run.who === who).length);
    } else if (what === "end") {
      if (going.get(item)?.fence === mark.fence) going.delete(item);
    } else if (what === "killed") {
      for (const run of [...going.values()].filter((run) => run.who === who)) {
        interrupted.push(run);
        going.delete(run.item);
      }
    } else if (what === "quiet") quiet.add(who);
    else quiet.delete(who);
  }
  return { wrong, most, interrupted, whileQuiet };
}
