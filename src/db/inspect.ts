/**
 * Facts about a database and a login on it, for the doctor and for the warnings at a worker's start. Reading them needs no
 * right beyond connecting.
 *
 * @module
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { LanewayError } from "../core/errors.ts";
import type { MigrationChain } from "./chain.ts";
import { PostgresClient } from "./client.ts";
import type { ChainStatus } from "./migration_rules.ts";
import { migrationStatus } from "./migrator.ts";

/** What a login is and may do. */
export interface LoginFacts {
  readonly login: string;
  readonly superuser: boolean;
  readonly bypassRls: boolean;
  /** Tables in the chains' schemas that the login owns, by itself or through a role; `schema.table`, at most 20. */
  readonly ownedTables: readonly string[];
  /** Those of the `laneway_*` group roles it is a member of. A superuser is listed only where it was granted. */
  readonly groups: readonly string[];
}

/** What a server is and how it stands. */
export interface ServerFacts {
  readonly database: string;
  /** As the server gives it, for example `17.10`. */
  readonly version: string;
  /** For comparing: 170010 is 17.10. */
  readonly versionNumber: number;
  /** `max_connections` of the server; the last few are for superusers. */
  readonly maxConnections: number;
  readonly reservedConnections: number;
  /** Connections of all logins to all databases, this one included. */
  readonly connectionsInUse: number;
  /** Database time minus host time, milliseconds; sure to half the round trip. Positive: the database is ahead. */
  readonly clockOffsetMs: number;
  readonly roundTripMs: number;
  /** Whether it is a standby, which takes no writes. */
  readonly readOnly: boolean;
}

/** What one URL leads to. */
export type Inspection =
  | {
    readonly ok: true;
    readonly login: LoginFacts;
    readonly server: ServerFacts;
    /** How far each chain is; null when this login may not read that. */
    readonly schemas: readonly ChainStatus[] | null;
  }
  | {
    readonly ok: false;
    /** Why, in one sentence with its fix, without the URL. */
    readonly problem: string;
  };

/** Options of `inspectDatabase`. */
export interface InspectOptions {
  /** Whose schemas to look at. */
  chains: readonly MigrationChain[];
  clock?: Clock;
  /** How long connecting may take, milliseconds. Default 5 000. */
  connectTimeoutMs?: number;
}

/** Looks at what a URL leads to. Never rejects for a database's sake: that it cannot be reached is a finding. */
export async function inspectDatabase(url: string, options: InspectOptions): Promise<Inspection> {
  let client: PostgresClient | undefined;
  try {
    client = await PostgresClient.open(url, {
      applicationName: "laneway-check",
      connectTimeoutMs: options.connectTimeoutMs,
    });
    const login = await readLogin(client, options.chains.map((chain) => chain.name));
    const server = await readServer(client, options.clock ?? systemClock);
    return { ok: true, login, server, schemas: await readSchemas(client, options.chains) };
  } catch (error) {
    return { ok: false, problem: error instanceof LanewayError ? error.message : describeError(error) };
  } finally {
    await client?.close();
  }
}

/**
 * Why a login cannot do what it is put to, with the fix; null when it can. No policy serves a login outside its role, so
 * every item it touched would fail.
 */
export function loginFault(facts: LoginFacts, use: "runtime" | "system" | "host"): string | null {
  if (facts.superuser || facts.groups.includes(`laneway_${use}`)) return null;
  const grant = `grant laneway_${use} to ${facts.login}`;
  return `The ${use} login ${facts.login} is no member of laneway_${use}: run \`${grant}\`, after \`migrate up\`, ` +
    "which makes that role";
}

/**
 * What is dangerous in a login for the use it is put to, each a sentence with its fix. Tenants are held apart by row
 * security, which owners (unless forced), superusers and BYPASSRLS logins escape.
 */
export function loginWarnings(facts: LoginFacts, use: "runtime" | "system" | "host"): string[] {
  const who = `The ${use} login ${facts.login}`;
  const warnings: string[] = [];
  if (facts.superuser) warnings.push(`${who} is a superuser, so nothing holds tenants apart: use a plain login`);
  if (facts.bypassRls && !facts.superuser) {
    warnings.push(`${who} may bypass row security: run \`alter role ${facts.login} nobypassrls\``);
  }
  if (facts.ownedTables.length > 0) {
    warnings.push(
      `${who} owns tables (${
        facts.ownedTables.slice(0, 3).join(", ")
      }): migrate with a login of its own, not with this one`,
    );
  }
  if (use === "runtime" && facts.groups.includes("laneway_system")) {
    warnings.push(`${who} is also a member of laneway_system and sees every tenant: revoke it, use two logins`);
  }
  return warnings;
}

async function readLogin(client: PostgresClient, schemas: readonly string[]): Promise<LoginFacts> {
  const [row] = await client.query<{ login: string; superuser: boolean; bypass: boolean; groups: string[] }>(
    `select r.rolname as login, r.rolsuper as superuser, r.rolbypassrls as bypass,
       (select coalesce(json_agg(g.rolname order by g.rolname), '[]') from pg_roles g
         where g.rolname in ('laneway_owner', 'laneway_runtime', 'laneway_system', 'laneway_host')
           and case when r.rolsuper
             then exists (select from pg_auth_members m where m.roleid = g.oid and m.member = r.oid)
             else pg_has_role(g.oid, 'member') end) as groups
     from pg_roles r where r.rolname = current_user`,
  );
  const owned = await client.query<{ name: string }>(
    `select format('%s.%s', n.nspname, c.relname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_roles r on r.rolname = current_user
     where c.relkind in ('r', 'p') and n.nspname = any($1::text[])
       and case when r.rolsuper then c.relowner = r.oid else pg_has_role(c.relowner, 'member') end
     order by 1 limit 20`,
    [`{${schemas.join(",")}}`],
  );
  return {
    login: row?.login ?? "",
    superuser: row?.superuser ?? false,
    bypassRls: row?.bypass ?? false,
    groups: row?.groups ?? [],
    ownedTables: owned.map((table) => table.name),
  };
}

async function readServer(client: PostgresClient, clock: Clock): Promise<ServerFacts> {
  // The first statement on a connection pays for warming it up, so the clock is read by the second.
  const [row] = await client.query<Record<"database" | "version" | "number" | "max" | "reserved" | "used", string>>(
    `select current_database() as database, current_setting('server_version') as version,
       current_setting('server_version_num') as number, current_setting('max_connections') as max,
       current_setting('superuser_reserved_connections') as reserved,
       (select sum(numbackends) from pg_stat_database where datname is not null)::text as used`,
  );
  const readClock = () =>
    client.query<{ ms: string; standby: boolean }>(
      "select (extract(epoch from clock_timestamp()) * 1000)::float8::text as ms, pg_is_in_recovery() as standby",
    );
  await readClock();
  const startedMs = clock.monotonic();
  const hostMs = clock.now();
  const [time] = await readClock();
  const roundTripMs = clock.monotonic() - startedMs;
  return {
    database: row?.database ?? "",
    version: row?.version ?? "",
    versionNumber: Number(row?.number),
    maxConnections: Number(row?.max),
    reservedConnections: Number(row?.reserved),
    connectionsInUse: Number(row?.used),
    clockOffsetMs: Math.round(Number(time?.ms) - (hostMs + roundTripMs / 2)),
    roundTripMs,
    readOnly: time?.standby ?? false,
  };
}

async function readSchemas(client: PostgresClient, chains: readonly MigrationChain[]): Promise<ChainStatus[] | null> {
  try {
    return await migrationStatus(client, chains);
  } catch (error) {
    if (client.gone) throw error;
    return null;
  }
}
