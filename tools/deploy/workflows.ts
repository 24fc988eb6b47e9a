/**
 * Workers in the workflows: each builds, checks or releases every worker of its `matrix.worker` lists.
 *
 * @module
 */
import { isMap, isSeq, parseDocument, Scalar } from "yaml";

/** Adds a worker to every `jobs.*.strategy.matrix.worker` of a workflow, in order; one that is there stays. */
export function addToMatrix(text: string, name: string): string {
  const document = parseDocument(text);
  const jobs = document.get("jobs");
  if (document.errors.length > 0 || !isMap(jobs)) throw new Error("Cannot add to the workflow: it has no jobs");
  let changed = false;
  for (const { value: job } of jobs.items) {
    const list = isMap(job) ? job.getIn(["strategy", "matrix", "worker"]) : undefined;
    if (!isSeq(list) || list.items.some((item) => nameOf(item) === name)) continue;
    const at = list.items.findIndex((item) => nameOf(item) > name);
    list.items.splice(at === -1 ? list.items.length : at, 0, new Scalar(name));
    changed = true;
  }
  return changed ? document.toString({ lineWidth: 0, flowCollectionPadding: false }) : text;
}

function nameOf(item: unknown): string {
  return String(item instanceof Scalar ? item.value : item);
}
