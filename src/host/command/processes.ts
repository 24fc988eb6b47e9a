/**
 * Processes that runs leave behind, and ending them.
 *
 * @module
 */

/** The variable that marks every process of a run, also those that left its process group. */
export const RUN_MARK = "LANEWAY_RUN";

// New ones may be forked while the list is read.
const MOST_ROUNDS = 5;
const AT_ONCE = 32;

/** Signals a process group; one that is gone is no error. Tells whether there was one. */
export function signalGroup(leader: number, signal: Deno.Signal): boolean {
  try {
    Deno.kill(-leader, signal);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    // macOS: every process of the group is a zombie. Else: somebody of another user, whom we may not end.
    if (error instanceof Deno.errors.PermissionDenied) return false;
    throw error;
  }
}

/**
 * Ends every process whose environment marks it as of `run`, or of a run below it (`RUNNER/` marks all of a runner's):
 * what called setsid or became a daemon is found by what it inherited. A process that cleared its environment is not
 * found. Where `/proc` cannot be read none is.
 *
 * @returns How many were ended.
 */
export async function killMarked(run: string): Promise<number> {
  let ended = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const pids = await findMarked(run);
    let now = 0;
    for (const pid of pids) if (killOne(pid)) now++;
    ended += now;
    if (now === 0) break;
  }
  return ended;
}

/** The ids of processes marked as of `run`. */
export async function findMarked(run: string): Promise<number[]> {
  const way = wayOfFinding();
  if (way === null) return [];
  return way === "itself" ? await readEnvirons(run) : await askGrep(run);
}

/**
 * How processes are found: `itself` reads their environments, or by `grep`: a build without every permission may not read
 * there, but may run what does. Null: not at all, as this system has no `/proc`.
 */
export function wayOfFinding(): "itself" | "grep" | null {
  try {
    Deno.readFileSync(`/proc/${Deno.pid}/environ`);
    return "itself";
  } catch (error) {
    return error instanceof Deno.errors.NotCapable ? "grep" : null;
  }
}

async function readEnvirons(run: string): Promise<number[]> {
  const pids: number[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    if (/^\d+$/.test(name) && Number(name) !== Deno.pid) pids.push(Number(name));
  }
  const wanted = `\u0000${RUN_MARK}=${run}`;
  const found: number[] = [];
  for (let at = 0; at < pids.length; at += AT_ONCE) {
    await Promise.all(
      pids.slice(at, at + AT_ONCE).map(async (pid) => {
        const environ = await Deno.readFile(`/proc/${pid}/environ`).catch(() => null);
        if (environ !== null && holds(environ, wanted)) found.push(pid);
      }),
    );
  }
  return found;
}

/** A whole name, or one that ends in a slash as the beginning of one. */
function holds(environ: Uint8Array, wanted: string): boolean {
  const text = `\u0000${new TextDecoder("latin1").decode(environ)}`;
  return wanted.endsWith("/") ? text.includes(wanted) : `${text}\u0000`.includes(`${wanted}\u0000`);
}

/** The same by grep, which is given the mark as a pattern: marks are letters, digits, dots, dashes and a slash. */
async function askGrep(run: string): Promise<number[]> {
  const pattern = `^${RUN_MARK}=${run.replaceAll(".", "\\.")}${run.endsWith("/") ? "" : "$"}`;
  try {
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: ["-c", 'exec grep -lsz -e "$1" /proc/[0-9]*/environ', "sh", pattern],
      clearEnv: true,
      stdin: "null",
      stderr: "null",
    }).output();
    const paths = new TextDecoder().decode(stdout).matchAll(/\/proc\/(\d+)\/environ/g);
    return [...paths].map(([, pid]) => Number(pid)).filter((pid) => pid !== Deno.pid);
  } catch {
    return [];
  }
}

function killOne(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}
