/**
 * A TCP proxy on loopback that can turn into a black hole: connections stay open, nothing is forwarded, nothing is
 * closed. What a lost route or a frozen host looks like.
 *
 * @module
 */

/** A proxy between a test and its server. */
export class TcpProxy {
  readonly #listener: Deno.TcpListener;
  readonly #target: { hostname: string; port: number };
  readonly #connections = new Set<Deno.TcpConn>();
  readonly #pumps = new Set<Promise<void>>();
  readonly #loop: Promise<void>;
  #gate: PromiseWithResolvers<void> | undefined;
  #answersOnly = false;
  #accepted = 0;
  #cutting = false;

  /** Listens on a free port and forwards to `port` on loopback. */
  constructor(port: number) {
    this.#target = { hostname: "127.0.0.1", port };
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#loop = this.#accept();
  }

  /** Where to connect to. */
  get port(): number {
    return this.#listener.addr.port;
  }

  /** The same URL by way of this proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = "127.0.0.1";
    changed.port = String(this.port);
    return changed.href;
  }

  /** Stops forwarding; new connections are taken in and starve too. With `answersOnly`, requests still get through. */
  blackHole(options: { answersOnly?: boolean } = {}): void {
    this.#gate ??= Promise.withResolvers<void>();
    this.#answersOnly = options.answersOnly ?? false;
  }

  /** Cuts every open connection. */
  cut(): void {
    for (const connection of this.#connections) hangUp(connection);
  }

  /** Cuts every connection that is open, and each further one as soon as it is made. */
  cutEach(): void {
    this.#cutting = true;
    this.cut();
  }

  /** Forwards again, what was held up first. */
  resume(): void {
    this.#cutting = false;
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** How many connections are open on the client's side and the server's together. */
  get connections(): number {
    return this.#connections.size;
  }

  /** How many connections clients have made so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Cuts everything and stops listening. */
  async close(): Promise<void> {
    this.#listener.close();
    this.cut();
    this.resume();
    await this.#loop;
    await Promise.all(this.#pumps);
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) this.#start(this.#serve(client));
    } catch {
      // Closed.
    }
  }

  #start(work: Promise<void>): void {
    const pump = work.catch(() => {}).finally(() => this.#pumps.delete(pump));
    this.#pumps.add(pump);
  }

  async #serve(client: Deno.TcpConn): Promise<void> {
    this.#accepted++;
    if (this.#cutting) return hangUp(client);
    this.#connections.add(client);
    let server: Deno.TcpConn | undefined;
    try {
      await this.#gate?.promise;
      server = await Deno.connect(this.#target);
      this.#connections.add(server);
      await Promise.race([this.#pump(client, server, "request"), this.#pump(server, client, "answer")]);
    } finally {
      for (const connection of [client, server]) {
        if (connection === undefined) continue;
        this.#connections.delete(connection);
        hangUp(connection);
      }
    }
  }

  async #pump(from: Deno.TcpConn, to: Deno.TcpConn, carries: "request" | "answer"): Promise<void> {
    const buffer = new Uint8Array(65_536);
    for (;;) {
      const length = await from.read(buffer);
      if (carries === "answer" || !this.#answersOnly) await this.#gate?.promise;
      if (length === null) return;
      for (let sent = 0; sent < length;) sent += await to.write(buffer.subarray(sent, length));
    }
  }
}

function hangUp(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Closed already.
  }
}
