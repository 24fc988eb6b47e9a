/** Placeholder. @module */
export function runMutations(_: { seeds: number; steps: number; only: string | undefined }): Promise<boolean> {
  return Promise.resolve(true);
}
