/**
 * Git as tests make repositories with it.
 *
 * @module
 */
import assert from "node:assert/strict";

/** Runs git in a folder, as somebody and with `main` as the first branch, whatever this machine is configured to. */
export async function git(cwd: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("git", {
    args: ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", ...args],
    cwd,
    stdin: "null",
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}
