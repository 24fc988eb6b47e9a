/**
 * Wires this worker: the only place of it that says `new`.
 *
 * @module
 */
import {
  type Check,
  checkHost,
  commandKinds,
  createNotifier,
  describeError,
  githubChannel,
  MemoryCache,
  type NoticeChannel,
  noticingLogger,
  type Notifier,
  openCommandsAt,
  type OpenHost,
  openHost,
  type OpenOptions,
  type OpenParts,
  type Parts,
  partsWithoutStore,
  SettingsError,
  silentLogger,
  webhookChannel,
  type WorkerParts,
  type WorkKind,
} from "../../mod.ts";
import { type HostRunnerSettings, type NoticeSettings, readConfigPath, readHostSettings } from "./settings.ts";

/** What `open` made and `build` needs of it. */
interface Opened {
  readonly settings: HostRunnerSettings;
  readonly host: OpenHost;
  readonly notifier: Notifier;
}

// By the parts that `open` gave: they have no place of their own for it.
const opened = new WeakMap<Parts, Opened>();

/** The kinds of the config. @throws {UsageError} It does not serve. @throws {SettingsError} It cannot be read. */
export async function configuredKinds(env: Readonly<Record<string, string>>): Promise<readonly WorkKind[]> {
  return await commandKinds(readConfigPath(env));
}

/**
 * Opens the host's parts and begins its heartbeat. A server that is away is no error: it is asked again.
 *
 * @throws {UsageError} The settings or the command config do not serve.
 * @throws {SettingsError} A file cannot be read.
 */
export async function open(options: OpenOptions): Promise<OpenParts> {
  const { env, settings: flags, clock, metrics } = options;
  const settings = readHostSettings(env);
  const kinds = await commandKinds(settings.configPath);
  const notifier = createNotifier({
    channels: channelsOf(settings.notices),
    source: `host-runner@${settings.host}`,
    intervalMs: settings.notices.intervalMs,
    ...{ clock, logger: options.logger },
  });
  const logger = noticingLogger(options.logger, notifier);
  const host = openHost({
    ...{ url: settings.url, readKey: settings.readKey, apiKey: settings.apiKey, timeoutMs: settings.timeoutMs },
    ...{ host: settings.host, lane: flags.lane, kinds, pollMs: flags.pollMs, clock, logger, metrics, notifier },
    signal: options.signal,
    ...(flags.kinds === null ? {} : { claimed: flags.kinds }),
  });
  const parts = partsWithoutStore({ settings: flags, env, ...host, clock, logger, metrics });
  opened.set(parts, { settings, host, notifier });
  const unwatch = noticeStrayErrors(notifier);
  return {
    parts,
    cache: new MemoryCache(clock),
    name: `rest as host ${settings.host}`,
    upkeep: false,
    ping: () => host.ping(),
    async close() {
      unwatch();
      await host.close();
      await notifier.close();
    },
  };
}

/** Builds a handler for each kind of the config. @throws {SettingsError} The work folder cannot be made or written. */
export async function build(parts: Parts): Promise<WorkerParts> {
  const found = opened.get(parts);
  if (found === undefined) throw new SettingsError("Cannot build a host runner over parts it has not opened: use open");
  const { settings, host, notifier } = found;
  const { clock, logger } = parts;
  const commands = await openCommandsAt(settings.configPath, {
    host: settings.host,
    worker: `host-runner@${Deno.hostname()}/${Deno.pid}`,
    recordAttempt: (attempt) => host.api.recordAttempt(attempt),
    ...{ clock, logger, notifier },
  });
  return { handlers: commands.handlers, close: () => commands.close() };
}

/**
 * What `check` finds: the preflight of a host.
 *
 * @throws As `open`, before anything is asked.
 */
export async function checks({ env, settings: flags, clock }: OpenOptions): Promise<readonly Check[]> {
  const settings = readHostSettings(env);
  return await checkHost({
    ...{ url: settings.url, readKey: settings.readKey, apiKey: settings.apiKey, timeoutMs: settings.timeoutMs },
    ...{ host: settings.host, lane: flags.lane, configPath: settings.configPath, clock, logger: silentLogger },
    env,
  });
}

function channelsOf({ webhookUrl, github }: NoticeSettings): NoticeChannel[] {
  return [
    ...(webhookUrl === null ? [] : [webhookChannel(webhookUrl)]),
    ...(github === null ? [] : [githubChannel(github)]),
  ];
}

/** The process survives what nobody caught, and its log tells of it; people are to be told too. */
function noticeStrayErrors(notifier: Notifier): () => void {
  const onRejection = ({ reason }: PromiseRejectionEvent) => notifier.notify("stray error", describeError(reason));
  const onError = ({ error }: ErrorEvent) => notifier.notify("stray error", describeError(error));
  addEventListener("unhandledrejection", onRejection);
  addEventListener("error", onError);
  return () => {
    removeEventListener("unhandledrejection", onRejection);
    removeEventListener("error", onError);
  };
}
