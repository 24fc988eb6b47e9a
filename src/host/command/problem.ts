/**
 * What is wrong with a config, told so that it can be mended.
 *
 * @module
 */
import { quoteText } from "../../core/describe_error.ts";
import { UsageError } from "../../runtime/usage_error.ts";

/** What stands before the host of a URL, and its query: a key may be in either, which is why they are refused. */
const SECRET_OF_URL = /(:\/\/)[^/@\s"]*(?=@)|(?<=:\/\/[^\s"?]*)(\?)[^\s"]*/g;

/** A place in a config's file, and whatever it holds. */
export class Place {
  readonly #file: string;
  readonly #root: unknown;
  readonly #path: readonly PropertyKey[];

  constructor(file: string, root: unknown, path: readonly PropertyKey[] = []) {
    this.#file = file;
    this.#root = root;
    this.#path = path;
  }

  /** The place below this one. */
  at(...steps: PropertyKey[]): Place {
    return new Place(this.#file, this.#root, [...this.#path, ...steps]);
  }

  /** What is wrong here, with the fix. The value is shown, but none of a variable: that may be a secret. */
  problem(why: string): UsageError {
    const hidden = this.#path.some((step) => step === "env");
    const value = this.#path.reduce<unknown>(
      (under, step) => typeof under === "object" && under !== null ? Reflect.get(under, step) : undefined,
      this.#root,
    );
    const shown = value === undefined || hidden ? "" : ` ${show(value)}`;
    return new UsageError(`Cannot use ${withoutSecrets(this.name)}${shown} of ${this.#file}: ${withoutSecrets(why)}`);
  }

  /** `kinds.DEV_ISSUE.argv[2]`. */
  get name(): string {
    if (this.#path.length === 0) return "the config";
    return this.#path.reduce<string>((text, step) => {
      if (typeof step === "number") return `${text}[${step}]`;
      const name = String(step);
      if (!/^[\w$-]+$/.test(name)) return `${text}[${quoteText(name)}]`;
      return text === "" ? name : `${text}.${name}`;
    }, "");
  }

  /** `value`, unless it is text that says why not. */
  must<T>(value: T | string): Exclude<T, string> {
    if (typeof value === "string") throw this.problem(value);
    return value as Exclude<T, string>;
  }
}

function show(value: unknown): string {
  const text = withoutSecrets(JSON.stringify(value) ?? String(value));
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function withoutSecrets(text: string): string {
  return text.replaceAll(SECRET_OF_URL, (_, userAt, queryAt) => `${userAt ?? queryAt}…`);
}
