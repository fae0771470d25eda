import type { ConnectionsControl, ConnectionView, EndedView } from "#core/control.ts";
import type { EndedConnection, LiveConnections, SeenDecision } from "#core/live.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Metadata } from "#core/session.ts";

/** What is known of a node besides the decision. */
export interface NodeFacts {
  /** The name of the provider that it comes from; "" when it is in the file. */
  readonly providerOf: (outbound: Outbound) => string;
  /** The name or address of its server; "" where it has none. */
  readonly serverOf: (outbound: Outbound) => string;
}

/** The connection table as the API shows it. Views are made one at a time during iteration. */
export function connectionsControl(live: LiveConnections, nodes: NodeFacts): ConnectionsControl {
  return {
    get size() {
      return live.size;
    },
    *entries() {
      for (const connection of live) yield new View(connection, nodes);
    },
    *ended() {
      for (const connection of live.ended) yield new Ended(connection, nodes);
    },
    totals: () => ({ uploadBytes: live.uploadTotalBytes, downloadBytes: live.downloadTotalBytes }),
    close: (id) => live.close(id),
    closeAll: () => void live.closeAll(),
  };
}

type Seen = Omit<EndedConnection, "endedAtMs" | "reason" | "detail">;

/** Works out only what is asked for: of most sessions that is two counters a second. */
class View implements ConnectionView {
  readonly #live: Seen;
  readonly #nodes: NodeFacts;
  readonly metadata: Metadata;
  readonly settled: SeenDecision | null;

  constructor(live: Seen, nodes: NodeFacts) {
    this.#live = live;
    this.#nodes = nodes;
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

  /** For UDP through a node, which has no stream to ask: the node's server as the file names it. */
  get remoteHost() {
    const { remoteAddress } = this.#live;
    if (remoteAddress !== "" || this.settled === null || this.metadata.network !== "udp")
      return remoteAddress;
    const { outbound } = this.settled;
    return outbound === undefined ? "" : this.#nodes.serverOf(outbound);
  }

  get sourceGeoIp() {
    return this.#records?.sourceCodes ?? null;
  }

  get destinationGeoIp() {
    return this.#records?.destinationCodes ?? null;
  }

  get sourceAsn() {
    return this.#records?.sourceSystem ?? "";
  }

  get destinationAsn() {
    return this.#records?.destinationSystem ?? "";
  }

  /** What the rules that were tried have looked up. */
  get #records() {
    return this.settled?.records;
  }

  get chain() {
    return this.settled?.chain ?? [];
  }

  get providerChain() {
    const { settled } = this;
    if (settled === null) return [];
    const { chain, outbound } = settled;
    const provider = outbound === undefined ? "" : this.#nodes.providerOf(outbound);
    return chain.map((_, at) => (at === chain.length - 1 ? provider : ""));
  }

  get rule() {
    return this.settled?.entered ?? this.settled?.rule ?? null;
  }

  get uploadBytes() {
    return this.#live.uploadBytes;
  }

  get downloadBytes() {
    return this.#live.downloadBytes;
  }
}

class Ended extends View implements EndedView {
  readonly endedAtMs: number;
  readonly reason: EndedConnection["reason"];
  readonly detail: string;

  constructor(connection: EndedConnection, nodes: NodeFacts) {
    super(connection, nodes);
    this.endedAtMs = connection.endedAtMs;
    this.reason = connection.reason;
    this.detail = connection.detail;
  }
}
