/**
 * The sockets clients run on, opened and secured by us: the driver takes its listeners off a socket it thinks closed, and
 * an error that comes after that would end the process.
 *
 * @module
 */
import type { Buffer } from "node:buffer";
import net from "node:net";
import tls from "node:tls";
import { SettingsError } from "../core/errors.ts";

/** Where to connect to, as the driver reads it from the URL. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** A Unix socket, instead of hosts. */
  readonly path?: string | false;
}

/** How the connection is secured. */
export type TlsMode =
  /** In the clear. */
  | "off"
  /** Secured when the server can; nobody's identity is checked. */
  | "prefer"
  /** Secured or not at all; nobody's identity is checked. */
  | "require"
  /** Secured, and the server's certificate must be valid for its name. */
  | "verify";

/** What a database URL says of TLS. */
export interface TlsSettings {
  readonly mode: TlsMode;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string;
}

const MODES: Readonly<Record<string, TlsMode>> = {
  disable: "off",
  false: "off",
  allow: "prefer",
  prefer: "prefer",
  require: "require",
  "no-verify": "require",
  true: "verify",
  "verify-ca": "verify",
  "verify-full": "verify",
};

// Of the URL's parameters, those that are ours to act on; the driver would send them to the server as settings.
const OURS = ["sslmode", "ssl", "sslrootcert", "channel_binding"];

/**
 * Takes what concerns TLS out of a URL: `sslmode` as libpq has it, `sslrootcert` naming a file of certificates (or
 * `system`), which makes any mode but `disable` a verified one.
 *
 * @throws {SettingsError} An unknown mode, or a file that cannot be read.
 */
export function splitTls(url: string): { readonly url: string; readonly tls: TlsSettings } {
  const query = url.indexOf("?");
  if (query < 0) return { url, tls: { mode: "off" } };
  const parameters = new URLSearchParams(url.slice(query + 1));
  const said = parameters.get("sslmode") ?? parameters.get("ssl");
  const root = parameters.get("sslrootcert");
  for (const name of OURS) parameters.delete(name);
  const rest = parameters.size === 0 ? url.slice(0, query) : `${url.slice(0, query)}?${parameters}`;
  const mode = said === null ? (root === null ? "off" : "verify") : MODES[said];
  if (mode === undefined) {
    throw new SettingsError(
      `Cannot use sslmode=${said} of a database URL: use disable, prefer, require or verify-full`,
    );
  }
  if (root === null || mode === "off") return { url: rest, tls: { mode } };
  return { url: rest, tls: root === "system" ? { mode: "verify" } : { mode: "verify", ca: readCertificates(root) } };
}

function readCertificates(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    throw new SettingsError(
      `Cannot read the certificates ${path} that sslrootcert names: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
}

/**
 * Opens a socket to the first host that answers, secured as asked. Its errors never end the process, whoever listens.
 *
 * @param options `timeoutMs` is for each host, TLS included; `signal` gives up at once.
 * @throws The last host's error; `code` is `CONNECT_TIMEOUT` when it did not answer.
 */
export async function openSocket(
  target: SocketTarget,
  options: { readonly tls: TlsSettings; readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<net.Socket> {
  let failure: unknown;
  for (const [i, host] of target.host.entries()) {
    try {
      return await openOne(target, { ...options, host, port: target.port[i] ?? 5432 });
    } catch (error) {
      failure = error;
    }
  }
  throw failure ?? new SettingsError("Cannot connect: the database URL names no host");
}

interface OneHost {
  readonly tls: TlsSettings;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly host: string;
  readonly port: number;
}

function openOne(target: SocketTarget, one: OneHost): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const opened: net.Socket[] = [];
    const fail = (error: unknown) => {
      finish();
      for (const socket of opened) socket.destroy();
      reject(error);
    };
    const giveUp = () => fail(Object.assign(new Error("given up"), { code: "CONNECTION_ENDED" }));
    const finish = () => {
      clearTimeout(timer);
      one.signal?.removeEventListener("abort", giveUp);
    };
    const timer = setTimeout(() => {
      const error = new Error(`no answer from ${one.host}:${one.port} within ${one.timeoutMs} ms`);
      fail(Object.assign(error, { code: "CONNECT_TIMEOUT" }));
    }, one.timeoutMs);
    const closed = () => fail(Object.assign(new Error("closed while connecting"), { code: "ECONNRESET" }));
    const watch = <S extends net.Socket>(socket: S): S => {
      opened.push(socket);
      socket.on("error", fail);
      socket.on("close", closed);
      return socket;
    };
    const done = (socket: net.Socket) => {
      finish();
      for (const each of opened) {
        keepQuiet(each);
        each.off("error", fail).off("close", closed);
      }
      resolve(socket);
    };
    if (one.signal?.aborted) return giveUp();
    one.signal?.addEventListener("abort", giveUp, { once: true });
    const raw = watch(new net.Socket());
    raw.once("connect", () => {
      if (one.tls.mode === "off" || typeof target.path === "string") return done(raw);
      askForTls(raw, one.tls.mode === "prefer", fail, (yes) => {
        if (!yes) return done(raw);
        const secured = watch(secure(raw, one));
        secured.once("secureConnect", () => done(secured));
      });
    });
    if (typeof target.path === "string") raw.connect(target.path);
    else raw.connect(one.port, one.host);
    raw.setNoDelay(true);
  });
}

function askForTls(
  raw: net.Socket,
  optional: boolean,
  fail: (error: unknown) => void,
  then: (yes: boolean) => void,
): void {
  raw.once("data", (answer: Buffer) => {
    // One byte, S or N. More would be somebody slipping words in before the handshake.
    if (answer.length === 1 && answer[0] === 0x53) then(true);
    else if (answer.length === 1 && answer[0] === 0x4e && optional) then(false);
    else fail(Object.assign(new Error("the server does not offer TLS, which sslmode asks for"), { code: "NO_TLS" }));
  });
  const request = new DataView(new ArrayBuffer(8));
  request.setInt32(0, 8);
  request.setInt32(4, 80_877_103);
  raw.write(new Uint8Array(request.buffer));
}

function secure(raw: net.Socket, one: OneHost): tls.TLSSocket {
  return tls.connect({
    socket: raw,
    servername: net.isIP(one.host) === 0 ? one.host : undefined,
    host: one.host,
    rejectUnauthorized: one.tls.mode === "verify",
    ...(one.tls.ca === undefined ? {} : { ca: one.tls.ca }),
  });
}

/** Keeps a listener for errors on the socket that no `removeAllListeners` takes away. */
function keepQuiet(socket: net.Socket): void {
  const quiet = () => {};
  const removeAll = socket.removeAllListeners.bind(socket);
  socket.on("error", quiet);
  socket.removeAllListeners = (event) => {
    removeAll(event);
    socket.on("error", quiet);
    return socket;
  };
}
