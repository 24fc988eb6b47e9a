/**
 * What the demo shows: on a terminal one line that updates itself, elsewhere one line an event.
 *
 * @module
 */

/** Counts of a run. */
export interface DemoCounts {
  /** Shipments to notify of in this run, as far as they are read. */
  wanted: number;
  delivered: number;
  /** Of those delivered, the ones that took more than one try. */
  retried: number;
  deadLettered: number;
  /** Lines that were refused. */
  skipped: number;
  /** Shipments notified by an earlier run. */
  already: number;
  /** Shipments given up by an earlier run. */
  deadBefore: number;
}

/** Fresh counts. */
export function noCounts(): DemoCounts {
  return { wanted: 0, delivered: 0, retried: 0, deadLettered: 0, skipped: 0, already: 0, deadBefore: 0 };
}

/** Where progress is written. */
export interface ProgressStream {
  /** Whether a line can be written over. */
  readonly terminal: boolean;
  write(text: string): void;
  /** Columns of the terminal. */
  columns(): number;
}

const REDRAW_MS = 50;
const CLEAR_LINE = "\r\x1b[K";

/** Shows progress. No color is used, so there is none to turn off. */
export class Progress {
  readonly #stream: ProgressStream;
  readonly #counts: DemoCounts;
  #drawnAtMs = -Infinity;
  #drawn = false;

  constructor(stream: ProgressStream, counts: DemoCounts) {
    this.#stream = stream;
    this.#counts = counts;
  }

  /** Writes a line that stays. */
  line(text: string): void {
    this.#erase();
    this.#stream.write(`${text}\n`);
  }

  /** Tells of one event: a line of its own where the output is no terminal, else a redrawn bar. */
  event(text: string): void {
    if (this.#stream.terminal) this.draw();
    else this.#stream.write(`${text}\n`);
  }

  /** Redraws the bar, at most every 50 ms. */
  draw(): void {
    if (!this.#stream.terminal || performance.now() - this.#drawnAtMs < REDRAW_MS) return;
    this.#drawnAtMs = performance.now();
    this.#drawn = true;
    this.#stream.write(CLEAR_LINE + bar(this.#counts, this.#stream.columns()));
  }

  /** Takes the bar away. */
  end(): void {
    this.#erase();
  }

  #erase(): void {
    if (this.#drawn) this.#stream.write(CLEAR_LINE);
    this.#drawn = false;
  }
}

/** The bar, at most `columns` - 1 wide. */
export function bar(counts: DemoCounts, columns: number): string {
  const done = counts.delivered + counts.deadLettered;
  const text = ` ${done}/${counts.wanted} shipments, ${counts.retried} retried, ${counts.deadLettered} dead-lettered`;
  const width = Math.min(Math.max(columns - 3 - text.length, 0), 40);
  if (width < 5) return text.trim().slice(0, Math.max(columns - 1, 0));
  const full = counts.wanted === 0 ? 0 : Math.floor(width * done / counts.wanted);
  return `[${"#".repeat(full)}${"-".repeat(width - full)}]${text}`;
}

/** The closing line. */
export function summary(counts: DemoCounts, elapsedMs: number): string {
  const { delivered, retried, deadLettered, skipped, already, deadBefore } = counts;
  const before = [
    ...(already > 0 ? [`${already} already notified`] : []),
    ...(deadBefore > 0 ? [`${deadBefore} dead-lettered before`] : []),
  ];
  const tail = before.length === 0 ? "" : ` (${before.join(", ")})`;
  return `${delivered} delivered, ${retried} retried, ${deadLettered} dead-lettered, ${skipped} skipped in ` +
    `${(elapsedMs / 1_000).toFixed(1)} s${tail}`;
}

/** The process's standard output. Never throws: a reader that has gone misses the rest. */
export function standardOutput(): ProgressStream {
  const encoder = new TextEncoder();
  return {
    terminal: Deno.stdout.isTerminal(),
    columns() {
      try {
        // A terminal that does not know its size says 0.
        return Deno.consoleSize().columns || 80;
      } catch {
        return 80;
      }
    },
    write(text) {
      const bytes = encoder.encode(text);
      try {
        for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
      } catch {
        // Nothing is left to tell it.
      }
    },
  };
}
