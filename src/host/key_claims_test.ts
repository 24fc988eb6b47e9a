import assert from "node:assert/strict";
import { readKeyClaims } from "./key_claims.ts";

function jwt(claims: unknown): string {
  const encode = (value: unknown) =>
    btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value)))).replaceAll("+", "-")
      .replaceAll("/", "_").replaceAll("=", "");
  return `${encode({ alg: "HS256" })}.${encode(claims)}.sig`;
}

Deno.test("a key's role, host and expiry are read", () => {
  const claims = { role: "laneway_host", host: "łódź-1", exp: 1_800_000_000 };
  assert.deepEqual(readKeyClaims(jwt(claims)), {
    role: "laneway_host",
    host: "łódź-1",
    expiresAtMs: 1_800_000_000_000,
  });
});

Deno.test("claims that are missing or of another type are null", () => {
  assert.deepEqual(readKeyClaims(jwt({ role: 1, exp: "soon" })), { role: null, host: null, expiresAtMs: null });
});

Deno.test("what is no JWT has no claims", () => {
  for (const key of ["", "sb_secret_abc", "a.b", "a.%%%.c", "a.bm90IGpzb24.c", "a.b.c.d", jwt(null)]) {
    assert.equal(readKeyClaims(key), null, key);
  }
});
