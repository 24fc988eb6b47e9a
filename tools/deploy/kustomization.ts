/**
 * Workers in `deploy/kubernetes/kustomization.yaml`.
 *
 * @module
 */
import { isMap, isSeq, parseDocument, type YAMLSeq } from "yaml";

/** Adds a worker's file and image; what is there stays as it is. @throws {Error} The file is no kustomization of this shape. */
export function addToKustomization(text: string, name: string): string {
  const document = parseDocument(text);
  const [resources, images] = ["resources", "images"].map((key) => document.get(key));
  if (!isSeq(resources) || !isSeq(images)) {
    throw new Error("Cannot add to deploy/kubernetes/kustomization.yaml: it must have the lists resources and images");
  }
  const file = `${name}.yaml`;
  if (!resources.items.some((item) => String(item) === file)) append(resources, document.createNode(file));
  if (!images.items.some((item) => isMap(item) && item.get("name") === name)) {
    append(images, document.createNode({ name, newName: `registry.example/${name}` }));
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function append(list: YAMLSeq, node: unknown): void {
  list.flow = false;
  list.add(node);
}
