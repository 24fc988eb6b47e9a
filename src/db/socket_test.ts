import assert from "node:assert/strict";
import { SettingsError } from "../core/errors.ts";
import { splitTls } from "./socket.ts";

Deno.test("splitTls() takes what concerns TLS out of a URL and leaves the rest", () => {
  const base = "postgres://u:p%40ss@db:5432/name";
  assert.deepEqual(splitTls(base), { url: base, tls: { mode: "off" } });
  assert.deepEqual(splitTls(`${base}?sslmode=require&channel_binding=require`), {
    url: base,
    tls: { mode: "require" },
  });
  assert.deepEqual(splitTls(`${base}?sslmode=verify-full&sslrootcert=system&options=-c%20a%3Db`), {
    url: `${base}?options=-c+a%3Db`,
    tls: { mode: "verify" },
  });
  assert.equal(splitTls(`${base}?sslmode=disable&sslrootcert=/nowhere`).tls.mode, "off");
});

Deno.test("splitTls() refuses an unknown mode and an unreadable file, showing no password", () => {
  const refusal = (parameters: string) => {
    try {
      splitTls(`postgres://u:hunter2@db/name?${parameters}`);
    } catch (error) {
      return error;
    }
  };
  for (
    const [parameters, says] of [["sslmode=always", /sslmode=always/], ["sslrootcert=/nowhere", /\/nowhere/]] as const
  ) {
    const error = refusal(parameters);
    assert.ok(error instanceof SettingsError);
    assert.match(error.message, says);
    assert.doesNotMatch(error.message, /hunter2/);
  }
});
