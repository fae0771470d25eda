/**
 * GET /connections is read every second by every open dashboard, so what does not change any more once a session
 * is under way is written once, and only its counters are put in between.
 */
import type { ConnectionView, Control } from "#core/control.ts";
import type { Metadata } from "#core/session.ts";

/** The JSON of one session around its two counters, and the values that it was made from. */
interface Written extends Changing {
  readonly head: string;
  readonly tail: string;
}

/** What routing, sniffing and look-ups fill in while a session is young. */
type Changing = Pick<
  ConnectionView,
  | "sniffedHost"
  | "destinationIp"
  | "dnsMode"
  | "process"
  | "remoteHost"
  | "sourceGeoIp"
  | "destinationGeoIp"
  | "sourceAsn"
  | "destinationAsn"
  | "chain"
  | "providerChain"
  | "rule"
>;

export class ConnectionsWriter {
  readonly #control: Control;
  /** By the one thing of a session that stays the same object from accept to close. */
  readonly #written = new WeakMap<Metadata, Written>();

  constructor(control: Control) {
    this.#control = control;
  }

  write(): string {
    const { connections } = this.#control;
    const { uploadBytes, downloadBytes } = connections.totals();
    const memory = this.#control.memoryBytes();
    const parts = [
      `{"downloadTotal":${downloadBytes},"uploadTotal":${uploadBytes},"memory":${memory},"connections":[`,
    ];
    let separator = "";
    for (const entry of connections.entries()) {
      const { head, tail } = this.#around(entry);
      parts.push(
        separator,
        head,
        String(entry.uploadBytes),
        `,"download":`,
        String(entry.downloadBytes),
        tail,
      );
      separator = ",";
    }
    parts.push("]}");
    return parts.join("");
  }

  #around(entry: ConnectionView): Written {
    const known = this.#written.get(entry.metadata);
    if (known !== undefined && isSame(known, entry)) return known;
    const fresh = written(entry);
    this.#written.set(entry.metadata, fresh);
    return fresh;
  }
}

/** Spelled out: a loop over names costs five times as much. */
function isSame(before: Changing, now: Changing): boolean {
  return (
    isSameList(before.chain, now.chain) &&
    before.rule === now.rule &&
    before.remoteHost === now.remoteHost &&
    before.destinationIp === now.destinationIp &&
    before.sniffedHost === now.sniffedHost &&
    before.process === now.process &&
    before.dnsMode === now.dnsMode &&
    isSameList(before.providerChain, now.providerChain) &&
    isSameList(before.sourceGeoIp, now.sourceGeoIp) &&
    isSameList(before.destinationGeoIp, now.destinationGeoIp) &&
    before.sourceAsn === now.sourceAsn &&
    before.destinationAsn === now.destinationAsn
  );
}

function isSameList(before: readonly string[] | null, now: readonly string[] | null): boolean {
  if (before === now) return true;
  if (before === null || now === null || before.length !== now.length) return false;
  return before.every((item, at) => item === now[at]);
}

function written(entry: ConnectionView): Written {
  return {
    sniffedHost: entry.sniffedHost,
    destinationIp: entry.destinationIp,
    dnsMode: entry.dnsMode,
    process: entry.process,
    remoteHost: entry.remoteHost,
    sourceGeoIp: entry.sourceGeoIp,
    destinationGeoIp: entry.destinationGeoIp,
    sourceAsn: entry.sourceAsn,
    destinationAsn: entry.destinationAsn,
    chain: entry.chain,
    providerChain: entry.providerChain,
    rule: entry.rule,
    head: headJson(entry),
    tail: tailJson(entry),
  };
}

/** `{"id":…,"metadata":{…},"upload":` */
function headJson(entry: ConnectionView): string {
  const { metadata, process } = entry;
  const { id, network, inbound, source, destination, dscp } = metadata;
  const shown = {
    network,
    type: inbound.type,
    sourceIP: source.ip,
    destinationIP: entry.destinationIp ?? destination.ip ?? "",
    sourceGeoIP: entry.sourceGeoIp,
    destinationGeoIP: entry.destinationGeoIp,
    sourceIPASN: entry.sourceAsn,
    destinationIPASN: entry.destinationAsn,
    sourcePort: String(source.port), // ports are text: dashboards compare them with "443"
    destinationPort: String(destination.port),
    inboundIP: inbound.local.ip,
    inboundPort: String(inbound.local.port),
    inboundName: inbound.name,
    inboundUser: inbound.user ?? "",
    rematchName: "",
    host: destination.host ?? "",
    dnsMode: entry.dnsMode,
    uid: process?.uid ?? 0,
    process: process?.name ?? "",
    processPath: process?.path ?? "",
    specialProxy: inbound.target ?? "",
    specialRules: inbound.ruleList ?? "",
    remoteDestination: entry.remoteHost,
    dscp: dscp ?? 0,
    sniffHost: entry.sniffedHost,
  };
  return `${JSON.stringify({ id, metadata: shown }).slice(0, -1)},"upload":`;
}

/** `,"start":…}` */
function tailJson({ metadata, chain, providerChain, rule }: ConnectionView): string {
  const shown = {
    start: `${new Date(metadata.acceptedAtMs).toISOString().slice(0, -1)}+00:00`,
    chains: chain.toReversed(), // the leaf comes first here
    providerChains: providerChain.toReversed(),
    rule: rule?.apiType ?? "",
    rulePayload: rule?.payload ?? "",
  };
  return `,${JSON.stringify(shown).slice(1)}`;
}
