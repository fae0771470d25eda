/** What one probe says of this machine: pure, from what came back and what the running weir saw. */
import type { Ip } from "#core/session.ts";
import { bad, fine, type Finding } from "#cli/doctor/finding.ts";
import type { Passage } from "./running.ts";

export interface Trial {
  readonly kind: "stun" | "page" | "dns";
  readonly network: "tcp" | "udp";
  readonly family: 4 | 6;
  /** Of whom it was asked, as people know it. */
  readonly server: string;
  /** What the socket was bound to; null: nothing, as most programs do it. */
  readonly bound: string | null;
  /** Code of the error with which it failed at once. */
  readonly refused: string | null;
  readonly answered: boolean;
  /** Addresses that the server says it saw. */
  readonly shown: readonly Ip[];
  /** How weir let it out; null: it has not had it. */
  readonly passage: Passage | null;
  /** A question that weir's own DNS service has had. */
  readonly askedWeir: boolean;
}

/** `own`: addresses that must not be seen. */
export function leakFinding(trial: Trial, own: ReadonlySet<Ip>): Finding {
  const { refused, answered, passage, askedWeir } = trial;
  const what = nameOf(trial);
  if (askedWeir) return fine(what, "weir's DNS answers it");
  const seen = trial.shown.length === 0 ? "" : `; it saw ${trial.shown.join(", ")}`;
  if (passage !== null) {
    const way = `weir lets it out by ${passage.chain} (${passage.rule})`;
    const mine = trial.shown.find((ip) => own.has(ip));
    if (passage.direct) return bad("error", what, `${way}${seen}`, directWords(trial, passage));
    if (mine !== undefined) return bad("error", what, `${way}; it saw ${mine}`, PROXY_SHOWS);
    return fine(what, `${way}${seen}`);
  }
  if (answered) return bad("error", what, `it passes weir by, and is answered${seen}`, pastWords(trial));
  if (refused !== null) return fine(what, `refused (${refused}): nothing leaves`);
  return bad("warning", what, "no answer, and weir has not had it", [
    "it left past weir and was lost, or something on this machine dropped it: no answer tells these apart",
    "name a server that answers, or count on the line what leaves (tcpdump, nft counters)",
  ]);
}

const KINDS = { stun: "STUN", page: "page", dns: "DNS" };

function nameOf({ kind, network, family, server, bound }: Trial): string {
  const from = bound === null ? "" : ` from a socket bound to ${bound}`;
  return `leak: ${KINDS[kind]} ${server} over ${network.toUpperCase()}, IPv${family}${from}`;
}

const PROXY_SHOWS = [
  "the proxy does not hide this machine: it leaves by the same address, or tells it",
  "another node; for a page, one that adds no header with the client's address",
] as const;

function directWords({ kind }: Trial, { rule }: Passage): readonly [meaning: string, advice: string] {
  return kind === "dns"
    ? [
        "the server, and whoever carries the question, learns which names are asked for",
        `dns.enable and tun.dns-hijack: ["any:53"], or a rule before ${rule} that leads port 53 to a proxy`,
      ]
    : [
        "the server sees the address of this line",
        `a rule before ${rule} that leads it to a proxy, where that is not meant`,
      ];
}

function pastWords({ kind, family, bound }: Trial): readonly [meaning: string, advice: string] {
  if (kind === "dns")
    return [
      "the server, and whoever carries the question, learns which names are asked for",
      'tun.dns-hijack: ["any:53"] with tun.auto-redirect, no exclusion that covers the server, tun.inet6-address where it is an IPv6 one; or take it out of /etc/resolv.conf',
    ];
  if (bound !== null)
    return [
      "programs that choose their line, as browsers do for WebRTC, show its address",
      "tun.auto-redirect: true, which captures sockets bound to an address, and tun.strict-route: true, which refuses those bound to a device",
    ];
  if (family === 6)
    return [
      "whoever is reached by IPv6 sees the address of this line",
      "ipv6: true and tun.inet6-address so that the TUN takes IPv6, or tun.strict-route: true, which refuses it",
    ];
  return [
    "the server sees the address of this line",
    "see what of tun leaves it out: exclude-… (users, ports, devices), route-address, route-exclude-address; or whether the TUN is on",
  ];
}
