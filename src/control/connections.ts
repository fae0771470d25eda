import type { ConnectionsControl, ConnectionView } from "#core/control.ts";
import type { LiveConnection, LiveConnections } from "#core/live.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";

/** The name of the provider that a node comes from; "" where it stands in the file. */
type ProviderOf = (outbound: Outbound) => string;

/** The live table as the API shows it. Views are made one at a time while somebody iterates. */
export function connectionsControl(live: LiveConnections, providerOf: ProviderOf): ConnectionsControl {
  const shown = new ShownMetadata();
  return {
    *entries() {
      for (const connection of live) yield viewOf(connection, shown, providerOf);
    },
    totals: () => ({ uploadBytes: live.uploadTotalBytes, downloadBytes: live.downloadTotalBytes }),
    close: (id) => live.close(id),
    closeAll: () => void live.closeAll(),
  };
}

/**
 * The metadata with the destination that was decided on. As long as a decision stands it is the same object: what the
 * API has written about a session is kept by it.
 */
class ShownMetadata {
  /** By the session and not by the decision, which several sessions may share. */
  readonly #shown = new WeakMap<Metadata, { readonly decision: Decision; readonly metadata: Metadata }>();

  of(metadata: Metadata, decision: Decision | null): Metadata {
    if (decision === null) return metadata;
    const known = this.#shown.get(metadata);
    if (known?.decision === decision) return known.metadata;
    const fresh = { ...metadata, destination: decision.destination };
    this.#shown.set(metadata, { decision, metadata: fresh });
    return fresh;
  }
}

function viewOf(
  { metadata, decision, uploadBytes, downloadBytes, remoteAddress }: LiveConnection,
  shown: ShownMetadata,
  providerOf: ProviderOf,
): ConnectionView {
  const facts = decision?.facts;
  return {
    metadata: shown.of(metadata, decision),
    sniffedHost: decision?.sniffedHost ?? "",
    // Before the decision the address may be a fake one, which is not for people to see.
    destinationIp: decision?.destination.ip ?? facts?.ip ?? null,
    dnsMode: decision?.dnsMode ?? "normal",
    process: facts?.process ?? null,
    remoteHost: remoteAddress,
    sourceGeoIp: null,
    destinationGeoIp: null,
    sourceAsn: "",
    destinationAsn: "",
    chain: decision?.chain ?? [],
    providerChain:
      decision?.chain.map((_, at, chain) => (at === chain.length - 1 ? providerOf(decision.outbound) : "")) ??
      [],
    rule: decision?.rule ?? null,
    uploadBytes,
    downloadBytes,
  };
}
