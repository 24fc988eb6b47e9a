/**
 * Operations on endpoints.
 *
 * @module
 */
import type { OpContext } from "../../../mod.ts";
import { DEFAULT_ENDPOINT_POLICY } from "./rules.ts";
import type { Endpoint, EndpointManager, EndpointPolicy, EndpointStorage } from "./types.ts";

/** Builds the endpoint manager. */
export function createEndpointManager(storage: EndpointStorage, policy: Partial<EndpointPolicy> = {}): EndpointManager {
  return new EndpointManagerImpl(storage, { ...DEFAULT_ENDPOINT_POLICY, ...policy });
}

class EndpointManagerImpl implements EndpointManager {
  readonly #storage: EndpointStorage;
  readonly #policy: EndpointPolicy;

  constructor(storage: EndpointStorage, policy: EndpointPolicy) {
    this.#storage = storage;
    this.#policy = policy;
  }

  read(ctx: OpContext, host: string): Promise<Endpoint | null> {
    return this.#storage.readEndpoint(ctx.orgId, host);
  }

  takeProbe(ctx: OpContext, host: string): Promise<boolean> {
    return this.#storage.takeProbe(ctx.orgId, host, this.#policy.probeHoldMs);
  }

  failed(ctx: OpContext, host: string, probe: boolean): Promise<Endpoint> {
    return this.#storage.failed(ctx.orgId, host, { ...this.#policy, probe });
  }

  answered(ctx: OpContext, host: string): Promise<void> {
    return this.#storage.answered(ctx.orgId, host);
  }
}
