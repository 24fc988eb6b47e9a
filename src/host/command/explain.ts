/**
 * What a config does, in words.
 *
 * @module
 */
import { exitLines } from "./classify.ts";
import type { CommandConfig } from "./config.ts";

/** What a config does, for people: a few lines for each kind. */
export function explainConfig(config: CommandConfig): string[] {
  return Object.values(config.kinds).flatMap((kind) => {
    const limit = kind.timeLimitMs === 0 ? "no time limit" : `at most ${kind.timeLimitMs / 1000} s`;
    // What the kind's own table says: its codes, every other, a signal, the time limit.
    const own = exitLines(kind.exits).slice(0, kind.exits.codes.size + 3);
    const ends = own.map(({ end, outcome }) => `${end}: ${outcome}`);
    return [
      `${kind.kind}: ${kind.program} with ${kind.args.length} arguments, ${limit}, nice ${kind.nice}, stdin ${kind.stdin}`,
      ...(kind.clone === null ? [] : [`  in a clone of ${kind.clone.url.text}`]),
      ...(kind.prompt === null ? [] : [`  prompt ${kind.prompt.file.text} of folder ${kind.prompt.folder}`]),
      `  ${ends.join("; ")}`,
    ];
  });
}
