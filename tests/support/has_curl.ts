/**
 * Whether this machine has curl, which pages show calls with.
 *
 * @module
 */

/** Whether it is there; says so when it is not, as the test then does not run. */
export async function hasCurl(): Promise<boolean> {
  const there = await Deno.stat("/usr/bin/curl").then(() => true, () => false);
  if (!there) console.log("not run: there is no curl on this machine");
  return there;
}
