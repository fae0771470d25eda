import type { ConnectionsControl, ConnectionView } from "#core/control.ts";
import type { LiveConnection, LiveConnections } from "#core/live.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";

/** The name of the provider that a node comes from; "" where it stands in the file. */
type ProviderOf = (outbound: Outbound) => string;

/** The live table as the API shows it. Views are made one at a time while somebody iterates. */
export function connectionsControl(live: LiveConnections, providerOf: ProviderOf): ConnectionsControl {
  return {
    get size() {
      return live.size;
    },
    *entries() {
      for (const connection of live) yield new View(connection, providerOf);
    },
    totals: () => ({ uploadBytes: live.uploadTotalBytes, downloadBytes: live.downloadTotalBytes }),
    close: (id) => live.close(id),
    closeAll: () => void live.closeAll(),
  };
}

/** Works out only what is asked for: of most sessions that is two counters a second. */
class View implements ConnectionView {
  readonly #live: LiveConnection;
  readonly #providerOf: ProviderOf;
  readonly metadata: Metadata;
  readonly settled: Decision | null;

  constructor(live: LiveConnection, providerOf: ProviderOf) {
    this.#live = live;
    this.#providerOf = providerOf;
    this.metadata = live.metadata;
    this.settled = live.decision;
  }

  get destination() {
    return this.settled?.destination ?? this.metadata.destination;
  }

  get sniffedHost() {
    return this.settled?.sniffedHost ?? "";
  }

  /** Before the decision the address may be a fake one, which is not for people to see. */
  get destinationIp() {
    return this.settled?.destination.ip ?? this.settled?.facts.ip ?? null;
  }

  get dnsMode() {
    return this.settled?.dnsMode ?? "normal";
  }

  get process() {
    return this.settled?.facts.process ?? null;
  }

  get remoteHost() {
    return this.#live.remoteAddress;
  }

  get sourceGeoIp() {
    return null;
  }

  get destinationGeoIp() {
    return null;
  }

  get sourceAsn() {
    return "";
  }

  get destinationAsn() {
    return "";
  }

  get chain() {
    return this.settled?.chain ?? [];
  }

  get providerChain() {
    const { settled } = this;
    if (settled === null) return [];
    const last = settled.chain.length - 1;
    return settled.chain.map((_, at) => (at === last ? this.#providerOf(settled.outbound) : ""));
  }

  get rule() {
    return this.settled?.rule ?? null;
  }

  get uploadBytes() {
    return this.#live.uploadBytes;
  }

  get downloadBytes() {
    return this.#live.downloadBytes;
  }
}
