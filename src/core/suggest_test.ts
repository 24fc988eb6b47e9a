import assert from "node:assert/strict";
import { suggest } from "./suggest.ts";

Deno.test("suggest() finds the name that was meant, and none where nothing is near", () => {
  const known = ["capacity", "lease", "poll", "drain-grace"];
  assert.equal(suggest("capcity", known), "capacity");
  assert.equal(suggest("laese", known), "lease");
  assert.equal(suggest("DRAIN-GRACE", known), "drain-grace");
  assert.equal(suggest("verbose", known), null);
  assert.equal(suggest("", []), null);
});
