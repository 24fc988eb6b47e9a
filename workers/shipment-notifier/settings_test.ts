import assert from "node:assert/strict";
import { SettingsError, UsageError } from "../../mod.ts";
import { newWebhookSecret, readNotifierSettings } from "./settings.ts";

const SECRET = newWebhookSecret();

Deno.test("readNotifierSettings() takes a secret from its variable, or from a file that only its owner may read", async () => {
  assert.deepEqual(readNotifierSettings({ LANEWAY_WEBHOOK_SECRET: SECRET }), {
    webhookSecret: SECRET,
    webhookTimeoutMs: 10_000,
    deletedRetentionMs: 2_592_000_000,
  });
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, `${SECRET}\n`);
    await Deno.chmod(path, 0o600);
    assert.equal(readNotifierSettings({ LANEWAY_WEBHOOK_SECRET_FILE: path }).webhookSecret, SECRET);
    await Deno.chmod(path, 0o644);
    assert.throws(
      () => readNotifierSettings({ LANEWAY_WEBHOOK_SECRET_FILE: path }),
      (error) => error instanceof UsageError && /mode 0\d{3}.*chmod 600/.test(error.message),
    );
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("readNotifierSettings() refuses a secret that is doubled, short or unreadable, and shows none", () => {
  const short = "whsec_c2hvcnQ=";
  const cases: [Record<string, string>, new (...args: never[]) => Error, RegExp][] = [
    [{ LANEWAY_WEBHOOK_SECRET: SECRET, LANEWAY_WEBHOOK_SECRET_FILE: "x" }, UsageError, /both/],
    [{ LANEWAY_WEBHOOK_SECRET: short }, UsageError, /24 to 64/],
    [{ LANEWAY_WEBHOOK_SECRET: SECRET.slice(6) }, UsageError, /24 to 64/],
    [{ LANEWAY_WEBHOOK_SECRET_FILE: "/no/such" }, SettingsError, /no such file/],
  ];
  for (const [env, type, why] of cases) {
    assert.throws(() => readNotifierSettings(env), (error: unknown) => {
      assert.ok(error instanceof type, String(error));
      assert.match(error.message, why);
      assert.ok(!error.message.includes(short) && !error.message.includes(SECRET.slice(6)));
      return true;
    });
  }
});

Deno.test("readNotifierSettings() gives null where no secret is set, for a worker that waits for one", () => {
  const unset: Record<string, string>[] = [{}, { LANEWAY_WEBHOOK_SECRET: "" }, { LANEWAY_WEBHOOK_SECRET_FILE: "" }];
  for (const env of unset) {
    assert.equal(readNotifierSettings(env).webhookSecret, null);
  }
});

Deno.test("readNotifierSettings() takes a timeout within its range alone", () => {
  const read = (text: string) =>
    readNotifierSettings({ LANEWAY_WEBHOOK_SECRET: SECRET, LANEWAY_WEBHOOK_TIMEOUT: text }).webhookTimeoutMs;
  assert.deepEqual([read("100ms"), read("50s"), read("")], [100, 50_000, 10_000]);
  for (const text of ["99ms", "51s", "10", "soon"]) assert.throws(() => read(text), /LANEWAY_WEBHOOK_TIMEOUT/, text);
});

Deno.test("newWebhookSecret() never gives the same twice", () => {
  assert.equal(new Set(Array.from({ length: 100 }, newWebhookSecret)).size, 100);
});
