/**
 * `deno run -A tools/sbom.ts <worker>`: prints what a worker's binary is made of, as CycloneDX: the packages its modules
 * reach, with the versions and hashes of the lock file, and the runtime.
 *
 * @module
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "jsonc-parser";
import { readProject } from "./project.ts";

interface Info {
  readonly modules: readonly { readonly kind: string; readonly specifier: string; readonly npmPackage?: string }[];
  readonly npmPackages: Readonly<Record<string, NpmPackage>>;
}

interface NpmPackage {
  readonly name: string;
  readonly version: string;
  readonly dependencies: readonly string[];
}

interface Lock {
  readonly npm?: Readonly<Record<string, { readonly integrity?: string }>>;
}

/** The document. @param root The project's folder. @throws {Error} There is no such worker, or it cannot be read. */
export async function sbomOf(root: string, worker: string): Promise<Record<string, unknown>> {
  const { workers: [found], manifest } = await readProject(root, worker);
  if (found === undefined) {
    throw new Error(`Cannot list what ${worker} is made of: there is no workers/${worker}/worker.ts`);
  }
  const release = (parse(manifest ?? "{}") as { version?: string }).version ?? found.release;
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", `workers/${worker}/worker.ts`],
    cwd: root,
    stderr: "inherit",
  }).output();
  if (!success) throw new Error(`Cannot list what ${worker} is made of: deno info failed`);
  const info = JSON.parse(new TextDecoder().decode(stdout)) as Info;
  const lock = JSON.parse(await Deno.readTextFile(join(root, "deno.lock")).catch(() => "{}")) as Lock;
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", "bom-ref": worker, name: worker, version: release } },
    components: [
      {
        type: "platform",
        "bom-ref": "deno",
        name: "deno",
        version: Deno.version.deno,
        purl: `pkg:github/denoland/deno@v${Deno.version.deno}`,
      },
      ...reached(info).map((id) => componentOf(id, info.npmPackages[id], lock)),
    ],
  };
}

/** Every package that a module of the worker imports, and what those depend on. */
function reached({ modules, npmPackages }: Info): string[] {
  const found = new Set<string>();
  const visit = (id: string) => {
    if (found.has(id) || npmPackages[id] === undefined) return;
    found.add(id);
    npmPackages[id].dependencies.forEach(visit);
  };
  for (const { npmPackage } of modules) if (npmPackage !== undefined) visit(npmPackage);
  return [...found].sort();
}

function componentOf(id: string, npm: NpmPackage | undefined, lock: Lock) {
  const { name = id, version = "" } = npm ?? {};
  const integrity = lock.npm?.[id]?.integrity;
  const hash = integrity === undefined ? null : /^(sha\d+)-(.+)$/.exec(integrity);
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const hashes = hash === null ? [] : [{ alg: `SHA-${hash[1]?.slice(3)}`, content: hexOf(hash[2] ?? "") }];
  return { type: "library", "bom-ref": id, name, version, purl, hashes };
}

function hexOf(base64: string): string {
  return [...atob(base64)].map((char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

if (import.meta.main) {
  const [worker] = Deno.args;
  if (worker === undefined) {
    console.error("sbom: Cannot list what no worker is made of: give one, such as shipment-notifier");
    Deno.exit(2);
  }
  console.log(JSON.stringify(await sbomOf(fileURLToPath(new URL("..", import.meta.url)), worker), null, 2));
}
