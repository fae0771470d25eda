/** What the library is told of the dialling side: one store a Trust, one context for all nodes that are alike. */
import { createHash } from "node:crypto";
import type { Trust } from "#core/trust.ts";
import type { SslClients, SslHandle } from "#platform/tls.ts";
import { clientTuning, type MinVersion } from "./tuning.ts";

/** PEM: the certificate, then its chain; and its key. */
export interface KeyPair {
  readonly certificate: string;
  readonly privateKey: string;
}

export interface Identity {
  readonly trust: Trust;
  readonly minVersion: MinVersion;
  readonly keyPair: KeyPair | null;
}

/** Who is believed: whom an authority vouches for; whoever has a pin, which is looked for in a chain up to an authority; all. */
export type Belief = "authorities" | "pin" | "anybody";

/** Different settings of different nodes; one more is not kept. */
const MAX_KEPT = 64;

interface Kept {
  store: SslHandle | null;
  readonly contexts: Map<string, SslHandle>;
}

/** Lives as long as the Trust, or the nodes that were made with it: a reload leaves nothing. */
const keptOf = new WeakMap<Trust, Kept>();

/** Throws an `Error` with the library's reason. */
export function clientContext(clients: SslClients, identity: Identity, belief: Belief): SslHandle {
  const { trust, minVersion, keyPair } = identity;
  const kept = keptOf.get(trust) ?? { store: null, contexts: new Map<string, SslHandle>() };
  keptOf.set(trust, kept);
  const key = createHash("sha256")
    .update(JSON.stringify([belief, minVersion, keyPair]))
    .digest("hex");
  const known = kept.contexts.get(key);
  if (known !== undefined) return known;
  if (belief !== "anybody") kept.store ??= clients.makeStore(trust.authorities().join("\n"));
  const made = clients.make({
    minVersion,
    ciphers: clientTuning.ciphers,
    groups: clientTuning.ecdhCurve,
    signatures: clientTuning.sigalgs,
    keyPair,
    authorities: belief === "anybody" ? null : kept.store,
    verifies: belief === "authorities",
  });
  if (kept.contexts.size < MAX_KEPT) kept.contexts.set(key, made);
  return made;
}
