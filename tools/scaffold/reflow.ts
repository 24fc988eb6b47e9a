/**
 * Prose that has grown too wide by its names is wrapped anew: comments of TypeScript and SQL, paragraphs of Markdown.
 *
 * @module
 */

const WIDTH = 120;

/** How a line of prose begins, by what file it is in: its prefix, which each line of a paragraph repeats. */
const PROSE: Readonly<Record<string, RegExp>> = {
  ts: /^(\s*(?:\*|\/\/) )(?=[^\s@-](?!``))/,
  sql: /^(\s*-- )(?=\S)/,
  md: /^()(?=[\w`*(\[])/,
};

/** The text with paragraphs that have a line beyond 120 characters wrapped; every other one as it stands. */
export function reflow(path: string, text: string): string {
  const prose = PROSE[/\.(\w+)$/.exec(path)?.[1] ?? ""];
  if (prose === undefined) return text;
  const out: string[] = [];
  let paragraph: string[] = [];
  let prefix = "";
  let fenced = false;
  const end = () => {
    out.push(...paragraph.some((line) => line.length > WIDTH) ? wrapped(paragraph, prefix) : paragraph);
    paragraph = [];
  };
  for (const line of text.split("\n").flatMap(opened)) {
    if (line.startsWith("```")) fenced = !fenced;
    const begins = fenced ? undefined : prose.exec(line)?.[1];
    if (begins === undefined || (paragraph.length > 0 && begins !== prefix)) end();
    if (begins === undefined) {
      out.push(line);
      continue;
    }
    prefix = begins;
    paragraph.push(line);
  }
  end();
  return out.join("\n");
}

/** A comment of one line that is too wide, as one of several. */
function opened(line: string): string[] {
  const [, indent, said] = (line.length > WIDTH ? /^(\s*)\/\*\* (.*) \*\/$/.exec(line) : null) ?? [];
  return indent === undefined ? [line] : [`${indent}/**`, `${indent} * ${said}`, `${indent} */`];
}

function wrapped(lines: readonly string[], prefix: string): string[] {
  const out: string[] = [];
  let line = "";
  for (const word of lines.flatMap((one) => one.slice(prefix.length).split(" "))) {
    if (line !== "" && prefix.length + line.length + 1 + word.length > WIDTH) {
      out.push(prefix + line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...out, prefix + line];
}
