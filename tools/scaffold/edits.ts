/**
 * Edits of files that stand already: on their syntax tree, or at a marked place. Each leaves the rest of the file as it
 * was, and changes nothing when what it adds is there.
 *
 * @module
 */
import { applyEdits, modify, parse } from "jsonc-parser";

/** A place that should be marked is not; the message says where and how. */
export class NoPlace extends Error {}

/** Sets values of a JSON file, each by its path; one that is there stays as it is. */
export function addToJson(
  text: string,
  values: readonly (readonly [path: readonly string[], value: unknown])[],
): string {
  return values.reduce((json, [path, value]) => {
    const there = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], parse(json));
    if (there !== undefined) return json;
    const formattingOptions = { insertSpaces: true, tabSize: 2, eol: "\n" };
    return applyEdits(json, modify(json, [...path], value, { formattingOptions }));
  }, text);
}

/**
 * Puts a line at the end of a marked part, `<!-- NAME -->` to `<!-- end: NAME -->`, before the blank lines that end it.
 *
 * @param options.has What tells that it is there.
 * @throws {NoPlace} The part is not marked.
 */
export function addLine(
  text: string,
  line: string,
  { name, has, file }: { readonly name: string; readonly has: string; readonly file: string },
): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end: ${name} -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from === -1 || to === -1) {
    throw new NoPlace(`Cannot add to ${file}: put ${begin} and ${end}, each on a line of its own, around the place`);
  }
  const part = text.slice(from, to);
  if (part.includes(has)) return text;
  return `${text.slice(0, from)}${part.trimEnd()}\n${line}\n${/\n*$/.exec(part)?.[0].slice(1) ?? ""}${text.slice(to)}`;
}

/**
 * Puts a block before a marked line, with a blank line after it.
 *
 * @throws {NoPlace} The line is not there.
 */
export function addBlock(
  text: string,
  block: string,
  { before, has, file }: { readonly before: string; readonly has: string; readonly file: string },
): string {
  if (text.split("\n").includes(has)) return text;
  const at = text.indexOf(before);
  if (at === -1) throw new NoPlace(`Cannot add to ${file}: put the line ${before} where workers' blocks end`);
  return `${text.slice(0, at)}${block.trimEnd()}\n\n${text.slice(at)}`;
}
