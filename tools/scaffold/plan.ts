/**
 * What making a worker creates and changes, and what stands already. Nothing is written here.
 *
 * @module
 */
import { join } from "node:path";
import { type ExistingWorker, type Project, read } from "../project.ts";
import type { Change } from "./apply.ts";
import { type Entry, sharedEntries } from "./entries.ts";
import { formatted } from "./format.ts";
import { anotherRecord, BadName, type NewWorker, pluralOf } from "./names.ts";
import { reflow } from "./reflow.ts";
import { roleFiles, workerFiles } from "./template.ts";

/** A plan. */
export interface Plan {
  readonly changes: readonly Change[];
  /** What stands already and is left as it is. */
  readonly stands: readonly string[];
  /** The worker whose kind it serves; null when it has a kind of its own. */
  readonly kindOf: string | null;
}

/** What is asked for beside the names. */
export interface PlanOptions {
  /** Whether it gets a service in the compose file. */
  readonly container: boolean;
}

/**
 * Plans a worker.
 *
 * @throws {BadName} Another worker has its name, or another record its schema.
 * @throws {NoPlace} A file to be edited lacks its mark.
 */
export async function planWorker(project: Project, to: NewWorker, options: PlanOptions): Promise<Plan> {
  const { root, laneway, workers } = project;
  const definer = workers.find(({ name, kinds }) => name !== to.worker && kinds.includes(to.kind)) ?? null;
  checkFree(workers, to, definer);
  const own = definer === null ? await workerFiles(to, laneway) : await roleFiles(to, definer.name, laneway);
  const entries: Entry[] = [
    ...sharedEntries(project, to, { ...options, ownKind: definer === null }),
    ...(await formatted(own.map(({ path, text }) => ({ path, text: reflow(path, text) })), root)).map((
      { path, text },
    ) => ({
      path,
      what: "",
      edit: (there: string | null) => there ?? text,
    })),
  ];
  return { ...diff(root, entries), kindOf: definer?.name ?? null };
}

/** Runs entries one after the other, several on one file too; what comes out as it went in stands. */
function diff(root: string, entries: readonly Entry[]): Pick<Plan, "changes" | "stands"> {
  const changes = new Map<string, Change>();
  const stands: string[] = [];
  for (const { path, what, edit } of entries) {
    const earlier = changes.get(path);
    const before = earlier === undefined ? read(join(root, path)) : earlier.before;
    const now = earlier?.after ?? before;
    const after = edit(now);
    if (after === null) continue;
    if (after === now) stands.push(what === "" ? path : `${path}: ${what}`);
    else changes.set(path, { path, before, after, what: [earlier?.what, what].filter(Boolean).join(", ") });
  }
  return { changes: [...changes.values()], stands };
}

function checkFree(workers: readonly ExistingWorker[], to: NewWorker, definer: ExistingWorker | null): void {
  const schema = pluralOf(to.record);
  const itself = workers.find(({ name }) => name === to.worker);
  if (itself !== undefined) checkSame(itself, to, definer === null ? schema : null);
  const holder = workers.find(({ name, chains }) => name !== to.worker && chains.includes(schema));
  if (definer !== null || holder === undefined) return;
  throw new BadName(
    `Cannot name the record ${to.record}: its schema ${schema} is that of the ${holder.name}; give another one, such as ` +
      anotherRecord(to.kind),
  );
}

/** A worker that stands is completed as it was made, and never half made into another one. */
function checkSame(itself: ExistingWorker, to: NewWorker, schema: string | null): void {
  const { kinds, lane, chains } = itself;
  const cannot = `Cannot make worker ${to.worker}: it stands, `;
  if (!kinds.includes(to.kind)) {
    const those = kinds.join(", ") || "kinds of its configuration";
    throw new BadName(`${cannot}for ${those}; choose another name, or add the kind to it by hand`);
  }
  if (lane !== to.lane) {
    throw new BadName(
      `${cannot}on lane ${lane}; choose another name, or change the lane in its worker.ts and its deployment files`,
    );
  }
  if (schema !== null && chains.length > 0 && !chains.includes(schema)) {
    throw new BadName(
      `${cannot}with ${chains.join(", ")} for its records, not ${schema}; give the --record it was made with`,
    );
  }
}
