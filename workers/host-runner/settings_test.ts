import assert from "node:assert/strict";
import { SettingsError, UsageError } from "../../mod.ts";
import { readHostSettings, type ReadOptions } from "./settings.ts";

const KEY = `h.${btoa(JSON.stringify({ role: "laneway_host", host: "wsl1" }))}.s3cret`;
const ENV = {
  LANEWAY_REST_URL: "https://acme.supabase.co/rest/v1/",
  LANEWAY_REST_KEY_FILE: "/etc/laneway/key",
  LANEWAY_HOST_CONFIG: "/etc/laneway/commands.json",
};

function options(files: Record<string, { mode?: number; text: string }> = {}, modes: Record<string, number> = {}) {
  const all: Record<string, { mode?: number; text: string }> = { "/etc/laneway/key": { text: `${KEY}\n` }, ...files };
  return {
    readFile(path) {
      const file = all[path];
      if (file === undefined) throw new Deno.errors.NotFound(path);
      return { mode: file.mode ?? 0o100600, text: file.text };
    },
    modeOf: (path) => modes[path] ?? null,
  } satisfies ReadOptions;
}

Deno.test("the host's name is its key's, the URL ends without a slash, and the rest has its defaults", () => {
  const settings = readHostSettings(ENV, options());
  assert.equal(settings.host, "wsl1");
  assert.equal(settings.url, "https://acme.supabase.co/rest/v1");
  assert.equal(settings.readKey(), KEY);
  assert.equal(settings.apiKey, null);
  assert.equal(settings.timeoutMs, 10_000);
  assert.deepEqual(settings.notices, { webhookUrl: null, github: null, intervalMs: 15 * 60_000 });
});

Deno.test("the key's file is read anew each time, and its mode looked at each time", () => {
  const files: Record<string, { mode?: number; text: string }> = { "/etc/laneway/key": { text: KEY } };
  const read: ReadOptions = {
    readFile: (path) => ({ mode: files[path]?.mode ?? 0o100600, text: files[path]?.text ?? "" }),
  };
  const { readKey } = readHostSettings(ENV, read);
  files["/etc/laneway/key"] = { text: "another" };
  assert.equal(readKey(), "another");
  files["/etc/laneway/key"] = { text: "another", mode: 0o100640 };
  assert.throws(readKey, /mode 0640.*chmod 600/);
});

Deno.test("notices go to a webhook and to a repository", () => {
  const env = {
    ...ENV,
    LANEWAY_NOTICE_WEBHOOK_FILE: "/etc/laneway/webhook",
    LANEWAY_NOTICE_GITHUB_REPO: "acme/infra",
    LANEWAY_NOTICE_GITHUB_TOKEN: "ghp_s3cret",
    LANEWAY_NOTICE_INTERVAL: "30m",
  };
  const files = { "/etc/laneway/webhook": { text: "https://discord.com/api/webhooks/1/s3cret" } };
  assert.deepEqual(readHostSettings(env, options(files)).notices, {
    webhookUrl: "https://discord.com/api/webhooks/1/s3cret",
    github: { repo: "acme/infra", token: "ghp_s3cret", apiUrl: "https://api.github.com" },
    intervalMs: 30 * 60_000,
  });
});

Deno.test("a server of this machine may be reached without TLS", () => {
  const env = { ...ENV, LANEWAY_REST_URL: "http://127.0.0.1:3000" };
  assert.equal(readHostSettings(env, options()).url, "http://127.0.0.1:3000");
});

const BAD: readonly (readonly [what: string, env: Record<string, string>, says: RegExp, given?: ReadOptions])[] = [
  ["no URL", { LANEWAY_REST_URL: "" }, /LANEWAY_REST_URL is not set/],
  ["a URL without TLS", { LANEWAY_REST_URL: "http://acme.example/s3cret" }, /LANEWAY_REST_URL.*https/],
  ["a URL with a password", { LANEWAY_REST_URL: "https://u:s3cret@acme.example" }, /LANEWAY_REST_URL.*no password/],
  ["a URL with a query", { LANEWAY_REST_URL: "https://acme.example?apikey=s3cret" }, /LANEWAY_REST_URL.*query/],
  ["no URL at all", { LANEWAY_REST_URL: "acme s3cret" }, /LANEWAY_REST_URL.*no URL/],
  ["no key", { LANEWAY_REST_KEY_FILE: "" }, /LANEWAY_REST_KEY_FILE is not set/],
  ["two keys", { LANEWAY_REST_KEY: KEY }, /both LANEWAY_REST_KEY and LANEWAY_REST_KEY_FILE/],
  ["a key of two lines", { LANEWAY_REST_KEY: "a\nb", LANEWAY_REST_KEY_FILE: "" }, /LANEWAY_REST_KEY.*one word/],
  ["a key others may read", {}, /mode 0644.*chmod 600/, options({ "/etc/laneway/key": { mode: 0o100644, text: KEY } })],
  ["an empty key", {}, /is empty/, options({ "/etc/laneway/key": { text: "\n" } })],
  ["another host's key", { LANEWAY_HOST: "lap1" }, /the key is for host wsl1/],
  ["a key without a host", { LANEWAY_REST_KEY: "opaque-s3cret", LANEWAY_REST_KEY_FILE: "" }, /LANEWAY_HOST is not set/],
  ["a host's name in capitals", {
    LANEWAY_HOST: "WSL1",
    LANEWAY_REST_KEY: "opaque-s3cret",
    LANEWAY_REST_KEY_FILE: "",
  }, /LANEWAY_HOST "WSL1".*lower-case/],
  ["no config", { LANEWAY_HOST_CONFIG: "" }, /LANEWAY_HOST_CONFIG is not set/],
  ["a webhook without TLS", { LANEWAY_NOTICE_WEBHOOK: "http://d.example/s3cret" }, /LANEWAY_NOTICE_WEBHOOK.*https/],
  ["a repository without a token", { LANEWAY_NOTICE_GITHUB_REPO: "a/b" }, /without LANEWAY_NOTICE_GITHUB_TOKEN/],
  ["a token without a repository", { LANEWAY_NOTICE_GITHUB_TOKEN: "s3cret" }, /without LANEWAY_NOTICE_GITHUB_REPO/],
  ["a repository that is none", {
    LANEWAY_NOTICE_GITHUB_REPO: "https://github.com/a/b",
    LANEWAY_NOTICE_GITHUB_TOKEN: "s3cret",
  }, /OWNER\/NAME/],
  ["an interval out of range", { LANEWAY_NOTICE_INTERVAL: "1s" }, /LANEWAY_NOTICE_INTERVAL 1s.*1m to 1d/],
  [
    "an environment file others may read",
    {
      LANEWAY_ENV_FILE: "/etc/laneway/env",
    },
    /LANEWAY_ENV_FILE.*mode 0640/,
    options({}, { "/etc/laneway/env": 0o100640 }),
  ],
];

for (const [what, env, says, given] of BAD) {
  Deno.test(`wrong settings are told at once, naming the variable and no secret: ${what}`, () => {
    assert.throws(() => readHostSettings({ ...ENV, ...env }, given ?? options()), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, says);
      assert.ok(!error.message.includes("s3cret"), error.message);
      return true;
    });
  });
}

Deno.test("a key's file that is not there is told as such", () => {
  const env = { ...ENV, LANEWAY_REST_KEY_FILE: "/nowhere" };
  assert.throws(() => readHostSettings(env, options()), (error) => {
    assert.ok(error instanceof SettingsError);
    assert.match(error.message, /\/nowhere.*LANEWAY_REST_KEY_FILE.*no such file/);
    return true;
  });
});
