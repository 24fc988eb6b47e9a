/**
 * Names a process so that a reused process id is not taken for it.
 *
 * @module
 */

/** `<pid>-<start time>` of a living process, or null when it is gone. */
export function processKey(pid: number): string | null {
  let stat: string;
  try {
    stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  } catch {
    return null;
  }
  // Fields after the name, which stands in brackets and may hold anything: state first, the start time twentieth.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[19] === undefined) return null;
  return `${pid}-${fields[19]}`;
}
