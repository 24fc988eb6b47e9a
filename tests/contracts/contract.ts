/**
 * What every contract suite is: named cases, each run over a storage that `make` provides.
 *
 * @module
 */

/** What a suite runs over. */
export interface Harness {
  /** Moves the storage's database time forward. */
  advance(ms: number): void | Promise<void>;
  /** Releases everything. */
  close(): void | Promise<void>;
}

/** The cases of a suite, by the behaviour they prove. */
export type Cases<H extends Harness> = Readonly<Record<string, (harness: H) => Promise<void>>>;

/**
 * Registers one test with a step a case. All cases share one storage, as a Postgres database takes long to make: a case
 * makes its own orgs and must not be bothered by the rows of others.
 */
export function contractSuite<H extends Harness>(name: string, make: () => Promise<H>, cases: Cases<H>): void {
  Deno.test(name, async (t) => {
    const harness = await make();
    try {
      for (const [behaviour, run] of Object.entries(cases)) {
        // A pool opens connections within a step and closes them after the last: the test's own sanitizers see leaks.
        await t.step({
          name: behaviour,
          fn: () => run(harness),
          sanitizeOps: false,
          sanitizeResources: false,
        });
      }
    } finally {
      await harness.close();
    }
  });
}
