/**
 * The part of a config that names variables.
 *
 * @module
 */
import type { RawVariable } from "./config_schema.ts";
import { type EnvFrom, type EnvSource, isEnvName, isSteering } from "./environment.ts";
import { parseField } from "./fields.ts";
import type { FolderConfig } from "./folders.ts";
import type { Place } from "./problem.ts";
import { fieldsOf, parseTemplate } from "./template.ts";

/** What every command has unless the config says otherwise; HOME and TMPDIR are the run's own. */
export const DEFAULT_VARIABLES: Readonly<Record<string, EnvSource>> = {
  PATH: { type: "literal", value: "/usr/local/bin:/usr/bin:/bin" },
  LANG: { type: "literal", value: "C.UTF-8" },
};

/** What a variable is read against. */
export interface VariableContext {
  readonly below: (file: string) => string;
  readonly folders: Readonly<Record<string, FolderConfig>>;
}

/** Reads variables. @throws {UsageError} A name no variable can have, one of Laneway's, or one no item may give. */
export function compileVariables(
  raw: Readonly<Record<string, RawVariable>>,
  place: Place,
  context: VariableContext,
): Record<string, EnvSource> {
  const variables: Record<string, EnvSource> = {};
  for (const [name, value] of Object.entries(raw)) {
    const at = place.at(name);
    if (!isEnvName(name)) throw at.problem("a variable's name is letters, digits and underscores, no digit first");
    if (name.startsWith("LANEWAY_")) throw at.problem("names that begin with LANEWAY_ are Laneway's own: take another");
    const source = compileVariable(value, at, context);
    if (isSteering(name) && fromItem(source)) {
      throw at.problem("it steers the programs that are run, so no item may give its value: write a literal");
    }
    variables[name] = source;
  }
  return variables;
}

/** Reads which variables an item may bring. @throws {UsageError} A pattern that would let one steer what is run. */
export function readEnvFrom(raw: { readonly from: string; readonly allow: readonly string[] }, place: Place): EnvFrom {
  const field = place.at("from").must(parseField(raw.from));
  if (field.root !== "payload") throw place.at("from").problem("it must be a field of the payload, payload.NAME");
  raw.allow.forEach((pattern, i) => {
    const at = place.at("allow", i);
    const stem = pattern.endsWith("*") ? pattern.slice(0, -1) : pattern;
    if (!isEnvName(stem)) throw at.problem('it is no name of a variable and no beginning of one with "*", APP_*');
    if (isSteering(stem)) throw at.problem("it steers the programs that are run, so no item may set it: leave it out");
  });
  return { field, allow: raw.allow };
}

function compileVariable(raw: RawVariable, place: Place, context: VariableContext): EnvSource {
  if (typeof raw === "string") {
    if (raw.includes("\u0000")) throw place.problem("it holds a NUL, which no variable can: leave it out");
    return { type: "literal", value: raw };
  }
  if ("from" in raw) {
    const field = place.at("from").must(parseField(raw.from));
    return {
      type: "field",
      field,
      optional: raw.optional === true || raw.else !== undefined,
      otherwise: raw.else ?? null,
    };
  }
  if ("template" in raw) return { type: "template", template: place.at("template").must(parseTemplate(raw.template)) };
  if ("fromEnv" in raw) {
    if (!isEnvName(raw.fromEnv)) throw place.at("fromEnv").problem("it is no name of a variable");
    if (raw.fromEnv.startsWith("LANEWAY_")) {
      throw place.at("fromEnv").problem("the runner's own settings and keys are not handed on: use another variable");
    }
    return { type: "inherited", name: raw.fromEnv, optional: raw.optional === true };
  }
  if ("secretFile" in raw) return { type: "secret", path: context.below(raw.secretFile) };
  if (!Object.hasOwn(context.folders, raw.folder)) {
    throw place.at("folder").problem("there is no such folder: name it under folders");
  }
  const file = place.at("existingFile").must(parseTemplate(raw.existingFile));
  return { type: "existing", folder: raw.folder, file, otherwise: raw.else ?? "" };
}

function fromItem(source: EnvSource): boolean {
  if (source.type === "field") return comesOfItem(source.field.root);
  if (source.type === "template") return fieldsOf(source.template).some(({ root }) => comesOfItem(root));
  return false;
}

function comesOfItem(root: string): boolean {
  return root !== "host" && root !== "worker" && root !== "run";
}
