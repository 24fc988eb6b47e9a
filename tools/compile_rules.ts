/**
 * What `tools/compile.ts` decides, apart from doing it.
 *
 * @module
 */

/**
 * What a binary may do: `general` for a machine of one's own, `container` for a read-only file system, `host` for a worker
 * that starts other programs.
 */
export type Profile = "general" | "container" | "host";

/** The profiles. */
export const PROFILES: readonly Profile[] = ["general", "container", "host"];

/**
 * The profile a worker is built with.
 *
 * @param wanted As the command line says; undefined takes the one that fits.
 * @throws {Error} The worker starts programs and the profile forbids it, or the other way round: more than it needs.
 */
export function profileFor(wanted: string | undefined, runsPrograms: boolean): Profile {
  const profile = wanted ?? (runsPrograms ? "host" : "general");
  const known = PROFILES.find((name) => name === profile);
  if (known === undefined) throw new Error(`Cannot use --profile ${profile}: use ${PROFILES.join(" or ")}`);
  if (runsPrograms === (known === "host")) return known;
  throw new Error(
    runsPrograms
      ? `Cannot use --profile ${known}: this worker starts other programs; use --profile host`
      : "Cannot use --profile host: this worker starts no other programs; use general or container",
  );
}

/**
 * The bundled entry: the worker's definition with the release and commit it was built from.
 *
 * @param build.laneway What the worker imports Laneway as; null in Laneway's own repository.
 */
export function entryText(
  { worker, release, commit, laneway }: {
    readonly worker: string;
    readonly release: string;
    readonly commit: string;
    readonly laneway: string | null;
  },
): string {
  return `import { runWorker } from ${JSON.stringify(laneway ?? "../../../src/cli/program.ts")};
import { definition } from "../../../workers/${worker}/worker.ts";

await runWorker({ ...definition, release: ${JSON.stringify(release)}, commit: ${JSON.stringify(commit)} });
`;
}

/**
 * Refuses a target that would silently come out wrong.
 *
 * @throws {Error} `DENORT_BIN` is set: whatever the target, the binary is of that file's machine.
 */
export function refuseTarget(target: string | undefined, own: string, denort: string | undefined): void {
  if (target === undefined || target === own || !denort) return;
  throw new Error(
    `Cannot build for ${target} with DENORT_BIN set: the binary would be of that file's machine (${own}); unset ` +
      "DENORT_BIN, or build on that machine",
  );
}

/** Arguments of the bundling step. */
export function buildArgs(entry: string, out: string, { frozen }: { readonly frozen: boolean }): string[] {
  return [
    "bundle",
    "-q",
    ...(frozen ? ["--frozen"] : []),
    "--platform",
    "deno",
    "--sourcemap=inline",
    "-o",
    out,
    entry,
  ];
}

/** Arguments of the compiling step. */
export function compileArgs(
  build: {
    readonly bundle: string;
    readonly out: string;
    readonly profile: Profile;
    readonly target: string | undefined;
    readonly env: readonly string[];
  },
): string[] {
  return [
    "compile",
    "-q",
    "--no-config",
    "--no-lock",
    "--no-check",
    // Without it a binary started on a terminal would ask for what it lacks.
    "--no-prompt",
    "--no-code-cache",
    // Lets an idle worker give back what its start took: src/runtime/spare_memory.ts.
    "--v8-flags=--expose-gc",
    ...permissions(build),
    ...(build.target === undefined ? [] : ["--target", build.target]),
    "-o",
    build.out,
    build.bundle,
  ];
}

function permissions({ profile, env }: { readonly profile: Profile; readonly env: readonly string[] }): string[] {
  if (profile === "host") {
    // Of programs named one by one a whole process group could not be ended; a config may hand on any variable of the
    // process. The system's user is what holds a worker that starts programs.
    return [
      "--allow-net",
      "--allow-read",
      "--allow-write",
      "--allow-run",
      "--allow-env",
      "--allow-sys=hostname,statfs,uid",
    ];
  }
  const files = profile === "container" ? ["--allow-read=/run/secrets"] : ["--allow-read", "--allow-write"];
  return [
    "--allow-net",
    ...files,
    // Every LANEWAY_ variable, so that a misspelled one can be warned of; the rest of the environment reads as unset.
    `--allow-env=${["LANEWAY_*", ...env].join(",")}`,
    "--ignore-env",
    "--allow-sys=hostname",
  ];
}
