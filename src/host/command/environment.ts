/**
 * A command's environment: what the config names, and nothing of the runner's own.
 *
 * @module
 */
import { readSecretFile } from "../../runtime/secret_file.ts";
import { checkCarried } from "./argv.ts";
import { CommandFailure, invalidItem } from "./failure.ts";
import { type FieldPath, type FieldScope, readField, readPayload } from "./fields.ts";
import type { PathUnder } from "./safe_path.ts";
import { fill, type Template } from "./template.ts";

/** Where a variable's value comes from. */
export type EnvSource =
  | { readonly type: "literal"; readonly value: string }
  /** A field; without a value the variable is `otherwise`, or unset when that is null and it is optional. */
  | { readonly type: "field"; readonly field: FieldPath; readonly optional: boolean; readonly otherwise: string | null }
  | { readonly type: "template"; readonly template: Template }
  /** A variable of the runner's own environment, by name. */
  | { readonly type: "inherited"; readonly name: string; readonly optional: boolean }
  /** A key that the config grants: a file that its owner alone may read, read at each run. */
  | { readonly type: "secret"; readonly path: string }
  /** The path of a file in one of the config's folders when it exists, else `otherwise`. */
  | { readonly type: "existing"; readonly folder: string; readonly file: Template; readonly otherwise: string };

/** Variables whose names an item brings along. */
export interface EnvFrom {
  /** A field that holds an object of names and values. */
  readonly field: FieldPath;
  /** Names that may be set, exact or ending in `*`. Any other refuses the item. */
  readonly allow: readonly string[];
}

/** What `buildEnvironment` fills in from. */
export interface EnvRecipe {
  readonly sources: Readonly<Record<string, EnvSource>>;
  readonly from: EnvFrom | null;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

// What a loader, a shell, a language's runtime or a tool obeys before the program itself has its say.
const STEERING = [
  "PATH",
  "HOME",
  "SHELL",
  "USER",
  "LOGNAME",
  "PWD",
  "OLDPWD",
  "SHLVL",
  "TMPDIR",
  "IFS",
  "ENV",
  "BASH*",
  "SHELLOPTS",
  "PS1",
  "PS2",
  "PS4",
  "PROMPT_COMMAND",
  "CDPATH",
  "GLOBIGNORE",
  "ZDOTDIR",
  "FPATH",
  "LD_*",
  "DYLD_*",
  "MALLOC_*",
  "GLIBC_*",
  "GCONV_PATH",
  "LOCPATH",
  "NLSPATH",
  "LANG",
  "LANGUAGE",
  "LC_*",
  "RES_OPTIONS",
  "HOSTALIASES",
  "LOCALDOMAIN",
  "TERM*",
  "NODE_*",
  "NPM_*",
  "DENO_*",
  "BUN_*",
  "PYTHON*",
  "PERL*",
  "RUBY*",
  "GEM_*",
  "BUNDLE_*",
  "JAVA*",
  "_JAVA*",
  "JDK_*",
  "CLASSPATH",
  "MAVEN_*",
  "GRADLE_*",
  "GO*",
  "CARGO*",
  "RUST*",
  "PHP*",
  "LUA_*",
  "GIT_*",
  "GH_*",
  "SSH_*",
  "GPG_*",
  "EDITOR",
  "VISUAL",
  "PAGER",
  "LESS*",
  "MANPAGER",
  "BROWSER",
  "*_PROXY",
  "OPENSSL_*",
  "SSL_*",
  "CURL_*",
  "XDG_*",
  "DBUS_*",
  "SYSTEMD_*",
  "DOCKER_*",
  "AWS_*",
  "KUBECONFIG",
  "MAKEFLAGS",
  "LANEWAY_*",
];

/** Whether a variable may have this name at all. */
export function isEnvName(name: string): boolean {
  return NAME.test(name);
}

/** Whether a variable of this name steers the programs that are run, so that no item may give its value. */
export function isSteering(name: string): boolean {
  const upper = name.toUpperCase();
  return STEERING.some((pattern) => matches(pattern, upper));
}

/** Whether `name` is one of `allow`, and none that no item may give. */
export function isAllowed(name: string, allow: readonly string[]): boolean {
  return isEnvName(name) && !isSteering(name) && allow.some((pattern) => matches(pattern, name));
}

/** What else `buildEnvironment` needs. */
export interface EnvWorld {
  /** Path of a file under one of the config's folders; null when it does not exist there. */
  readonly existing: (path: PathUnder) => Promise<string | null>;
  /** The runner's own environment. */
  readonly own: (name: string) => string | undefined;
}

/**
 * The variables that a config gives a run, without those of Laneway.
 *
 * @throws {CommandFailure} `invalid_item`: a field is absent, or the item names a variable outside the allow list.
 * `not_started`: the host lacks what the config names.
 */
export async function buildEnvironment(
  recipe: EnvRecipe,
  scope: FieldScope,
  world: EnvWorld,
): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const [name, source] of Object.entries(recipe.sources)) {
    const value = await valueOf(source, name, { scope, world });
    if (value === null) continue;
    checkCarried(value, `variable ${name}`, source.type !== "field" && source.type !== "template");
    env[name] = value;
  }
  if (recipe.from !== null) Object.assign(env, brought(recipe.from, scope));
  return env;
}

async function valueOf(
  source: EnvSource,
  name: string,
  { scope, world }: { scope: FieldScope; world: EnvWorld },
): Promise<string | null> {
  switch (source.type) {
    case "literal":
      return source.value;
    case "template":
      return fill(source.template, scope);
    case "field": {
      const value = readField(scope, source.field);
      if (value !== null && value !== "") return value;
      if (source.optional) return source.otherwise;
      throw invalidItem(`the item has no ${source.field.text}, which variable ${name} needs`);
    }
    case "inherited": {
      const value = world.own(source.name);
      if (value !== undefined && value !== "") return value;
      if (source.optional) return null;
      throw new CommandFailure(
        "not_started",
        "retry",
        `the runner has no variable ${source.name}, which ${name} needs`,
      );
    }
    case "secret":
      return readSecret(source.path, name);
    case "existing":
      return await world.existing({ folder: source.folder, file: fill(source.file, scope) }) ?? source.otherwise;
  }
}

function readSecret(path: string, name: string): string {
  try {
    return readSecretFile(path, `variable ${name}`);
  } catch (cause) {
    throw new CommandFailure("not_started", "retry", `the key for variable ${name} cannot be read`, { cause });
  }
}

/** Variables the item brings; of names outside the list none is set, the item is refused. */
function brought({ field, allow }: EnvFrom, scope: FieldScope): Record<string, string> {
  const given = readPayload(scope.item.payload, field.steps);
  if (given === undefined || given === null) return {};
  if (typeof given !== "object" || Array.isArray(given)) {
    throw invalidItem(`${field.text} must be an object of variables`);
  }
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!isAllowed(name, allow)) {
      throw invalidItem(`${field.text} sets ${JSON.stringify(name.slice(0, 100))}, which is not on the allow list`);
    }
    if (!["string", "number", "boolean"].includes(typeof value)) {
      throw invalidItem(`${field.text}.${name} must be a text, a number or a boolean`);
    }
    checkCarried(String(value), `${field.text}.${name}`, false);
    env[name] = String(value);
  }
  return env;
}

function matches(pattern: string, name: string): boolean {
  if (pattern.endsWith("*")) return name.startsWith(pattern.slice(0, -1));
  if (pattern.startsWith("*")) return name.endsWith(pattern.slice(1));
  return pattern === name;
}
