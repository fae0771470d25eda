import type { ConnectionsControl, ConnectionView } from "#core/control.ts";
import type { LiveConnection, LiveConnections } from "#core/live.ts";
import type { Outbound } from "#core/outbound.ts";

/** The name of the provider that a node comes from; "" where it stands in the file. */
type ProviderOf = (outbound: Outbound) => string;

/** The live table as the API shows it. Views are made one at a time while somebody iterates. */
export function connectionsControl(live: LiveConnections, providerOf: ProviderOf): ConnectionsControl {
  return {
    *entries() {
      for (const connection of live) yield viewOf(connection, providerOf);
    },
    totals: () => ({ uploadBytes: live.uploadTotalBytes, downloadBytes: live.downloadTotalBytes }),
    close: (id) => live.close(id),
    closeAll: () => void live.closeAll(),
  };
}

function viewOf(
  { metadata, decision, uploadBytes, downloadBytes, remoteAddress }: LiveConnection,
  providerOf: ProviderOf,
): ConnectionView {
  const facts = decision?.facts;
  return {
    metadata: decision === null ? metadata : { ...metadata, destination: decision.destination },
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
