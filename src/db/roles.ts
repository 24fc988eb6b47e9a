/**
 * The group roles the schemas grant to. Login roles are the administrator's: each is made a member of one of these.
 *
 * @module
 */
import { SettingsError } from "../core/errors.ts";
import type { PostgresClient } from "./client.ts";
import { sqlState } from "./sqlstate.ts";

/** The group roles, NOLOGIN. `laneway_owner` may exist but is not needed: whoever migrates owns the schemas. */
export const GROUP_ROLES = ["laneway_runtime", "laneway_system", "laneway_host"] as const;

/**
 * Creates the group roles that are missing. Roles belong to the whole server, so another database's migrator may create
 * them at the same moment: that is fine.
 *
 * @throws {SettingsError} Some are missing and this login may not create roles; the message holds the SQL for somebody
 * who may.
 */
export async function ensureRoles(
  client: PostgresClient,
  roles: readonly string[] = GROUP_ROLES,
): Promise<void> {
  const known = await client.query<{ rolname: string }>(
    "select rolname from pg_roles where rolname = any($1::text[])",
    [`{${roles.join(",")}}`],
  );
  const missing = roles.filter((role) => !known.some((row) => row.rolname === role));
  for (const role of missing) {
    try {
      await client.script(`create role ${role} nologin`);
    } catch (error) {
      const state = sqlState((error as Error).cause);
      if (state === "42710" || state === "23505") continue;
      if (state !== "42501") throw error;
      const statements = missing.map((name) => `create role ${name} nologin;`).join(" ");
      throw new SettingsError(
        `Cannot create the role ${role} as this login may not create roles: have an administrator run: ${statements}`,
        { cause: error },
      );
    }
  }
}
