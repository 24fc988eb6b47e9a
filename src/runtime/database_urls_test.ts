import assert from "node:assert/strict";
import { SettingsError } from "../core/errors.ts";
import { readDatabaseUrls } from "./database_urls.ts";
import type { SecretFile } from "./secret_file.ts";
import { UsageError } from "./usage_error.ts";

const URL = "postgres://runtime:s3cret@db:5432/laneway";

function read(
  env: Record<string, string>,
  files: Record<string, SecretFile> = {},
): ReturnType<typeof readDatabaseUrls> {
  return readDatabaseUrls({
    env: (name) => env[name],
    readFile(path) {
      const file = files[path];
      if (file === undefined) throw new Deno.errors.NotFound(path);
      return file;
    },
  });
}

Deno.test("a URL comes from its variable or from the file its _FILE names", () => {
  assert.equal(read({ LANEWAY_DATABASE_URL: URL }).runtime, URL);
  const file = { "/s/url": { mode: 0o100600, text: `${URL}\n` } };
  assert.equal(read({ LANEWAY_SYSTEM_DATABASE_URL_FILE: "/s/url" }, file).system, URL);
  assert.equal(read({ LANEWAY_DATABASE_URL: "" }).runtime, null);
});

Deno.test("an area may have a database of its own", () => {
  const urls = read({ LANEWAY_DATABASE_URL: URL, LANEWAY_QUEUE_SYSTEM_DATABASE_URL: URL });
  assert.deepEqual(urls.areas, { queue: { runtime: null, system: URL, migrate: null } });
});

Deno.test("a variable and its _FILE together are refused", () => {
  assert.throws(
    () => read({ LANEWAY_DATABASE_URL: URL, LANEWAY_DATABASE_URL_FILE: "/s/url" }),
    /both LANEWAY_DATABASE_URL and LANEWAY_DATABASE_URL_FILE/,
  );
});

Deno.test("a file that others may read is refused, with its mode and the command that mends it", () => {
  for (const [mode, shown] of [[0o100644, "0644"], [0o100640, "0640"], [0o100602, "0602"]] as const) {
    assert.throws(
      () => read({ LANEWAY_DATABASE_URL_FILE: "/s/url" }, { "/s/url": { mode, text: URL } }),
      (error) =>
        error instanceof UsageError && error.message.includes(shown) && error.message.includes("chmod 600 /s/url"),
    );
  }
});

Deno.test("the modes of mounted secrets are the orchestrator's, but not of paths that leave the mount", () => {
  const file = { mode: 0o100444, text: URL };
  assert.equal(read({ LANEWAY_DATABASE_URL_FILE: "/run/secrets/url" }, { "/run/secrets/url": file }).runtime, URL);
  const outside = "/run/secrets/../../tmp/url";
  assert.throws(() => read({ LANEWAY_DATABASE_URL_FILE: outside }, { [outside]: file }), UsageError);
});

Deno.test("a missing file is the world's fault, a malformed URL the writer's, and neither shows the secret", () => {
  assert.throws(
    () => read({ LANEWAY_DATABASE_URL_FILE: "/nope" }),
    (error) => error instanceof SettingsError && !(error instanceof UsageError) && /no such file/.test(error.message),
  );
  const empty = { "/s/url": { mode: 0o100600, text: "\n" } };
  assert.throws(() => read({ LANEWAY_DATABASE_URL_FILE: "/s/url" }, empty), /\/s\/url named by .*_FILE: it is empty/);
  for (const url of ["mysql://u:s3cret@h/x", "runtime:s3cret@db", "s3cret"]) {
    assert.throws(
      () => read({ LANEWAY_DATABASE_URL: url }),
      (error) => error instanceof UsageError && !error.message.includes("s3cret"),
    );
  }
});

Deno.test("a folder in place of a file is told as that", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-urls-" });
  try {
    const env = (name: string) => name === "LANEWAY_DATABASE_URL_FILE" ? folder : undefined;
    assert.throws(() => readDatabaseUrls({ env }), /it is a folder; name the file in it$/);
  } finally {
    await Deno.remove(folder);
  }
});
