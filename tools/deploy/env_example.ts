/**
 * `.env.example`: every setting under its name, with a value for this machine.
 *
 * @module
 */
import { sampleEnv } from "../../src/runtime/flag_docs.ts";

/** Ends what is generated; workers' own variables follow. */
export const END_OF_FLAGS = "# end of flags";

/** The logins of `deploy/compose/logins.sql`, on the server of `docker compose` and of `deno task dev`. */
export const LOCAL_URLS: Readonly<Record<string, string>> = {
  LANEWAY_DATABASE_URL: "postgres://app_runtime:local@localhost:5432/work",
  LANEWAY_SYSTEM_DATABASE_URL: "postgres://app_system:local@localhost:5432/work",
  LANEWAY_MIGRATE_DATABASE_URL: "postgres://app_owner:local@localhost:5432/work",
};

const HEAD =
  `# Copy to .env, which is not committed: deno task dev reads it; for a worker by itself: set -a; . ./.env; set +a.
# Down to "${END_OF_FLAGS}" it is generated (deno task docs). A line that begins with # shows a default.
`;

/** The file, with what follows the flags in `there` kept. */
export function envExample(there: string | null): string {
  const flags = sampleEnv().replaceAll(/^#(LANEWAY_\w+)=.*$/gm, (line, name: string) => {
    const local = LOCAL_URLS[name];
    return local === undefined ? line : `${name}=${local}`;
  });
  const at = there?.indexOf(`${END_OF_FLAGS}\n`) ?? -1;
  const rest = at === -1 || there === null ? "\n# end of workers\n" : there.slice(at + END_OF_FLAGS.length + 1);
  return `${HEAD}\n${flags.trimEnd()}\n\n${END_OF_FLAGS}\n${rest}`;
}
