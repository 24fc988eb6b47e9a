/**
 * Makes a bundle's source map small enough to live in every worker's memory: the runtime keeps it as part of the program's
 * text, several times over. As the bundler writes it, with every source inside, it held 24 MB of a worker's 106.
 *
 * Kept is which line of which of our own files a line of the bundle is from, which is what a stack trace is read for.
 *
 * @module
 */

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const COMMENT = "//# sourceMappingURL=data:application/json;base64,";

interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** The bundle with its inline map replaced by the small one; as it is when it has none. */
export function withSmallMap(bundle: string): string {
  const at = bundle.lastIndexOf(COMMENT);
  if (at === -1) return bundle;
  const bytes = Uint8Array.from(atob(bundle.slice(at + COMMENT.length).trim()), (char) => char.charCodeAt(0));
  const small = shrinkMap(JSON.parse(new TextDecoder().decode(bytes)), (source) => !source.includes("/npm/"));
  return `${bundle.slice(0, at)}${COMMENT}${btoa(JSON.stringify(small))}\n`;
}

/** A map of the sources that `keep` names: a line each, without columns, names and the sources themselves. */
export function shrinkMap(map: SourceMap, keep: (source: string) => boolean): SourceMap & { readonly version: 3 } {
  const sources = map.sources.filter(keep);
  const place = new Map(sources.map((source, i) => [source, i]));
  let [source, line] = [0, 0];
  let [lastSource, lastLine] = [0, 0];
  let mapped = false;
  const lines = map.mappings.split(";").map((segments) => {
    let first: { source: number; line: number } | undefined;
    for (const segment of segments === "" ? [] : segments.split(",")) {
      const [, sourceBy, lineBy] = decode(segment);
      source += sourceBy ?? 0;
      line += lineBy ?? 0;
      if (sourceBy !== undefined) first ??= { source, line };
    }
    // A line without a segment is part of the statement above it.
    if (first === undefined) return "";
    const index = place.get(map.sources[first.source] ?? "");
    if (index === undefined) {
      // Said once, where ours ends: else a line of a package would count as the last of ours before it.
      const end = mapped ? "A" : "";
      mapped = false;
      return end;
    }
    mapped = true;
    const text = `A${encode(index - lastSource)}${encode(first.line - lastLine)}A`;
    [lastSource, lastLine] = [index, first.line];
    return text;
  });
  return { version: 3, sources, mappings: lines.join(";") };
}

/** The numbers of one segment. */
function decode(segment: string): number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const char of segment) {
    const digit = DIGITS.indexOf(char);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

function encode(number: number): string {
  let left = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = "";
  do {
    const digit = left & 31;
    left >>>= 5;
    text += DIGITS[left > 0 ? digit | 32 : digit] ?? "";
  } while (left > 0);
  return text;
}
