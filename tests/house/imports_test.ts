/**
 * Rooms import leftwards only, floors within a room downwards only, and nothing runs in circles.
 */
import assert from "node:assert/strict";
import { production, readSources, ROOT, ROOT_URL, type SourceFile } from "./source_files.ts";

const ROOMS = [
  "core",
  "infra",
  "db",
  "audit",
  "idempotency",
  "outbox",
  "tenancy",
  "work",
  "storages",
  "managers",
  "runtime",
  "host",
  "cli",
  "workers",
];

// Wiring points stand between rooms: `migrations.ts` and `scopes.ts` hold what storages and managers are wired from.
const FILES_AS_ROOMS: Readonly<Record<string, string>> = {
  "src/storages.ts": "storages",
  "src/migrations.ts": "storages",
  "src/scopes.ts": "storages",
  "src/managers.ts": "managers",
};

// Shared kernels of declarations: pure types anybody may name, which import nothing but core.
const TYPES_OF_LATER_ROOMS: readonly (readonly [from: string, to: string])[] = [];

function roomOf(path: string): string | null {
  const wiring = FILES_AS_ROOMS[path];
  if (wiring !== undefined) return wiring;
  const [top, room, ...rest] = path.split("/");
  if (top === "workers") return "workers";
  return top === "src" && room !== undefined && rest.length > 0 ? room : null;
}

// 0 types, 1 rules, 2 storage, 3 manager; null for a helper: on the highest floor it imports, above storages if it asks one.
function floorOf(path: string): number | null {
  const file = path.split("/").slice(2).join("/");
  if (/^types\.ts$/.test(file)) return 0;
  if (/^(\w+_)?rules\.ts$/.test(file)) return 1;
  if (/^storage(\.ts$|\/)/.test(file)) return 2;
  return /manager\.ts$/.test(file) ? 3 : null;
}

function heightOf(path: string, edges: ReadonlyMap<string, readonly string[]>, above: readonly string[] = []): number {
  const own = floorOf(path);
  if (own !== null || above.includes(path)) return own ?? 0;
  const roommates = (edges.get(path) ?? []).filter((to) => roomOf(to) === roomOf(path));
  const highest = Math.max(0, ...roommates.map((to) => heightOf(to, edges, [...above, path])));
  return highest === 2 ? 3 : highest;
}

interface Graph {
  /** Of each file of ours, the files of ours it imports. */
  readonly edges: ReadonlyMap<string, readonly string[]>;
}

async function readGraph(entries: readonly string[]): Promise<Graph> {
  const edges = new Map<string, string[]>();
  const entry = await Deno.makeTempFile({ prefix: "laneway-house-", suffix: ".ts" });
  try {
    await Deno.writeTextFile(entry, entries.map((path) => `import "${ROOT_URL}${path}";`).join("\n"));
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--config", `${ROOT}deno.json`, entry],
      cwd: ROOT,
      stdin: "null",
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    const info = JSON.parse(new TextDecoder().decode(stdout)) as {
      modules: {
        specifier: string;
        dependencies?: { code?: { specifier?: string }; type?: { specifier?: string } }[];
      }[];
    };
    const own = (specifier: string | undefined) =>
      specifier?.startsWith(ROOT_URL) ? specifier.slice(ROOT_URL.length) : null;
    for (const module of info.modules) {
      const path = own(module.specifier);
      if (path === null) continue;
      const targets = (module.dependencies ?? []).flatMap((
        { code, type },
      ) => [own(code?.specifier), own(type?.specifier)]);
      edges.set(path, [...new Set(targets.filter((target) => target !== null))]);
    }
  } finally {
    await Deno.remove(entry);
  }
  return { edges };
}

async function productionGraph(): Promise<{ graph: Graph; files: SourceFile[] }> {
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  return { graph: await readGraph(files.map(({ path }) => path)), files };
}

Deno.test("every import of a room goes to a room on its left", async () => {
  const { graph, files } = await productionGraph();
  assert.ok(files.length > 50 && graph.edges.size >= files.length, "the graph covers the tree");
  const wrong: string[] = [];
  for (const [from, targets] of graph.edges) {
    const room = roomOf(from);
    if (!/^(src|workers)\//.test(from)) continue;
    assert.ok(room !== null, `${from} stands in no room: move it into one, or name it a wiring point here`);
    assert.ok(ROOMS.includes(room), `${from} stands in no known room`);
    for (const to of targets) {
      const other = roomOf(to);
      if (other === null || ROOMS.indexOf(other) <= ROOMS.indexOf(room)) continue;
      if (TYPES_OF_LATER_ROOMS.some(([a, b]) => a === from && b === to)) continue;
      wrong.push(`${from} imports ${to}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("within a room, types import nothing above them, rules only types, storages no manager", async () => {
  const { graph } = await productionGraph();
  const wrong: string[] = [];
  for (const [from, targets] of graph.edges) {
    const floor = floorOf(from);
    if (floor === null) continue;
    for (const to of targets) {
      if (roomOf(from) === roomOf(to) && heightOf(to, graph.edges) > floor) wrong.push(`${from} imports ${to}`);
    }
  }
  // A kind's type names its retry policy, which the rules define.
  assert.deepEqual(wrong.filter((line) => line !== "src/work/types.ts imports src/work/rules.ts"), []);
});

Deno.test("no storage is imported by a sibling room; its manager is asked", async () => {
  const { graph } = await productionGraph();
  const wrong: string[] = [];
  for (const [from, targets] of graph.edges) {
    const room = roomOf(from);
    for (const to of targets) {
      const storage = /^src\/\w+\/storage\/(?!sql\.ts)/.test(to);
      if (storage && roomOf(to) !== room && room !== "storages") wrong.push(`${from} imports ${to}`);
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("no file imports itself round a circle", async () => {
  const { graph } = await productionGraph();
  const done = new Set<string>();
  const circles: string[] = [];
  function visit(path: string, above: readonly string[]): void {
    if (above.includes(path)) {
      circles.push([...above.slice(above.indexOf(path)), path].join(" → "));
      return;
    }
    if (done.has(path)) return;
    for (const to of graph.edges.get(path) ?? []) visit(to, [...above, path]);
    done.add(path);
  }
  for (const path of graph.edges.keys()) visit(path, []);
  assert.deepEqual(circles, []);
});

Deno.test("production code imports no test helper", async () => {
  const { graph } = await productionGraph();
  const wrong = [...graph.edges].flatMap(([from, targets]) =>
    /^(src|workers)\//.test(from)
      ? targets.filter((to) => /^(tests|tools)\/|_test\.ts$/.test(to)).map((to) => `${from} imports ${to}`)
      : []
  );
  assert.deepEqual(wrong, []);
});

// `AbortSignal.any` is named in the one comment that says why; nothing calls it.
Deno.test("no signal of several is made by AbortSignal.any, which is collected before it fires", async () => {
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  const found = files.filter(({ text }) => /AbortSignal\.any\(/.test(text)).map(({ path }) => path);
  assert.deepEqual(found, [], "Cannot rely on AbortSignal.any: use eitherOf of src/core/either.ts");
});
