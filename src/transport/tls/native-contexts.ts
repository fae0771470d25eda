/**
 * The library's objects for outbound TLS: one certificate store for each `Trust`, one context shared by all nodes with
 * equal settings.
 */
import { createHash } from "node:crypto";
import type { TlsClientOptions } from "#core/tls.ts";
import type { Trust } from "#core/trust.ts";
import type { SslClients, SslHandle } from "#platform/tls.ts";
import { clientTuning } from "./tuning.ts";

export type Identity = Pick<TlsClientOptions, "trust" | "minVersion" | "keyPair">;

/**
 * Which certificates are accepted: those with a chain to a trusted authority; those whose chain contains the pinned
 * certificate; all of them.
 */
export type Belief = "authorities" | "pin" | "any";

/** Different settings of different nodes; one more is not kept. */
const MAX_KEPT = 64;

interface Kept {
  store: SslHandle | null;
  readonly contexts: Map<string, SslHandle>;
}

export class ClientContexts {
  readonly #clients: SslClients;
  readonly #groups: string;
  /** Lives as long as the Trust, or the nodes that were made with it: a reload leaves nothing. */
  readonly #keptOf = new WeakMap<Trust, Kept>();

  /** `groups`: the key exchanges, as the library lists them. */
  constructor(clients: SslClients, groups: string = clientTuning.ecdhCurve) {
    this.#clients = clients;
    this.#groups = groups;
  }

  /** Throws an `Error` with the library's reason. */
  of({ trust, minVersion, keyPair }: Identity, belief: Belief): SslHandle {
    const kept = this.#of(trust);
    const key = createHash("sha256")
      .update(JSON.stringify([belief, minVersion, keyPair]))
      .digest("hex");
    const known = kept.contexts.get(key);
    if (known !== undefined) return known;
    if (belief !== "any") this.store(trust);
    const made = this.#clients.make({
      minVersion,
      ciphers: clientTuning.ciphers,
      groups: this.#groups,
      signatures: clientTuning.sigalgs,
      keyPair,
      authorities: belief === "any" ? null : kept.store,
      verifies: belief === "authorities",
    });
    if (kept.contexts.size < MAX_KEPT) kept.contexts.set(key, made);
    return made;
  }

  /** The authorities. Throws an `Error` with the library's reason. */
  store(trust: Trust): SslHandle {
    return (this.#of(trust).store ??= this.#clients.makeStore(trust.authorities().join("\n")));
  }

  #of(trust: Trust): Kept {
    const known = this.#keptOf.get(trust);
    if (known !== undefined) return known;
    const made = { store: null, contexts: new Map<string, SslHandle>() };
    this.#keptOf.set(trust, made);
    return made;
  }
}
