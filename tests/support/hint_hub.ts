/**
 * LISTEN and NOTIFY without a database: topics of many processes, on a clock in the test's hands.
 *
 * @module
 */
import type { Clock } from "../../src/core/clock.ts";
import { PostgresTopics } from "../../src/infra/postgres_topics.ts";

/** What stands where the server would. */
export class HintHub {
  readonly #clock: Clock;
  readonly #listeners = new Set<(channel: string, text: string) => void>();
  readonly #cuts = new Set<() => void>();
  /** Notifications sent, probes not counted. */
  sent = 0;
  /** Whether connections can be opened. */
  up = true;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The topics of one more process. */
  topics(): PostgresTopics {
    return new PostgresTopics({
      clock: this.#clock,
      run: (_sql, params) => {
        const texts = JSON.parse(params[1] ?? "[]") as string[];
        this.sent += texts.length;
        for (const text of texts) this.#deliver(params[0] ?? "", text);
        return Promise.resolve();
      },
      listen: (onNotify) => {
        if (!this.up) return Promise.reject(new Error("nobody answers"));
        const { promise: closed, resolve } = Promise.withResolvers<void>();
        const cut = () => {
          this.#listeners.delete(onNotify);
          this.#cuts.delete(cut);
          resolve();
        };
        this.#listeners.add(onNotify);
        this.#cuts.add(cut);
        return Promise.resolve({
          closed,
          query: (_sql, params) => {
            if (params.length === 2) this.#deliver(params[0] ?? "", params[1] ?? "");
            return Promise.resolve();
          },
          close: () => Promise.resolve(cut()),
          destroy: cut,
        });
      },
    });
  }

  /** Cuts every listening connection; none can be opened until `up` is set again. */
  cut(): void {
    this.up = false;
    for (const cut of [...this.#cuts]) cut();
  }

  #deliver(channel: string, text: string): void {
    for (const listener of [...this.#listeners]) listener(channel, text);
  }
}
