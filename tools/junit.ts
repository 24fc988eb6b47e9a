/**
 * Counts what a JUnit report holds.
 *
 * @module
 */

/** How many tests ended how. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Reads the counts from a report as `deno test --junit-path` writes it: steps count as tests, as Deno counts them. */
export function countTests(xml: string): TestCounts {
  let [total, failed, skipped] = [0, 0, 0];
  for (const [, attributes] of xml.matchAll(/<testsuite\s([^>]*)>/g)) {
    const read = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(attributes ?? "")?.[1] ?? 0);
    total += read("tests");
    failed += read("failures") + read("errors");
    skipped += read("disabled") + read("skipped");
  }
  return { passed: total - failed - skipped, failed, skipped };
}
