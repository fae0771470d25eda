/**
 * GET /connections is read every second by every open dashboard, so the text of a session that is under way is kept and
 * only its counters are written anew. Keeping costs several times what writing it once does: the first documents would
 * pay for all sessions at once, so each pays for some and writes the others in one go.
 */
import type { ConnectionView, ConnectionsControl, Control } from "#core/control.ts";
import type { Metadata } from "#core/session.ts";

/** The JSON of one session up to its counters, and what has to be the same for it to stay true. */
interface Kept {
  readonly settled: object;
  readonly remoteHost: string;
  readonly head: string;
}

/** How many texts one document makes to keep. */
const NEWLY_KEPT = 300;
/** A part is about 100 KiB: a tenth of what a slow reader may hold up, and few enough that each costs little. */
const PART_CHARACTERS = 100_000;
const PART_ENTRIES = 130;
/** Precedes the first counter; text in between cannot hold it, its quotes would be escaped. */
const UPLOAD = ',"upload":';

export class ConnectionsWriter {
  readonly #control: Control;
  /** By the one thing of a session that stays the same object from accept to close. */
  readonly #kept = new WeakMap<Metadata, Kept>();
  readonly #times = new TimeTexts();

  constructor(control: Control) {
    this.#control = control;
  }

  write(): string {
    return [...this.parts()].join("");
  }

  /** The same text in pieces, each made when it is read: a slow reader sees counters of different moments, and the whole is never in memory. */
  *parts(): Generator<string, undefined> {
    const { connections } = this.#control;
    const { uploadBytes, downloadBytes } = connections.totals();
    const memory = this.#control.memoryBytes();
    let text = `{"downloadTotal":${downloadBytes},"uploadTotal":${uploadBytes},"memory":${memory},"connections":[`;
    let separator = "";
    let newlyKept = 0;
    let once: object[] = [];
    for (const entry of connections.entries()) {
      let head = this.#headOf(entry);
      if (head === null && entry.settled !== null && newlyKept < NEWLY_KEPT) {
        newlyKept++;
        head = this.#keep(entry, entry.settled);
      }
      if (head === null) once.push(shownOf(entry, this.#times));
      else {
        text += `${separator}${head}${entry.uploadBytes},"download":${entry.downloadBytes}}`;
        separator = ",";
      }
      if (text.length < PART_CHARACTERS && once.length < PART_ENTRIES) continue;
      yield text + listed(once, separator);
      text = "";
      separator = ",";
      once = [];
    }
    yield `${text}${listed(once, separator)}]}`;
  }

  #headOf({ metadata, settled, remoteHost }: ConnectionView): string | null {
    const kept = this.#kept.get(metadata);
    return kept !== undefined && kept.settled === settled && kept.remoteHost === remoteHost
      ? kept.head
      : null;
  }

  #keep(entry: ConnectionView, settled: object): string {
    const text = JSON.stringify(shownOf(entry, this.#times));
    const head = text.slice(0, text.lastIndexOf(UPLOAD) + UPLOAD.length);
    this.#kept.set(entry.metadata, { settled, remoteHost: entry.remoteHost, head });
    return head;
  }
}

/** RFC 3339 with milliseconds and an offset; sessions of one second share what the calendar says of it. */
class TimeTexts {
  #second = Number.NaN;
  #text = "";

  of(atMs: number): string {
    const second = Math.floor(atMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toISOString().slice(0, -4);
    }
    return `${this.#text}${String(atMs - second * 1000).padStart(3, "0")}+00:00`;
  }
}

/** Those that have ended, the newest first. */
export function endedJson(connections: ConnectionsControl) {
  const times = new TimeTexts();
  return {
    connections: Array.from(connections.ended(), (one) => ({
      ...shownOf(one, times),
      end: times.of(one.endedAtMs),
      reason: one.reason,
      detail: one.detail,
    })),
  };
}

/** Elements of a list behind the earlier ones. */
function listed(entries: readonly object[], separator: string): string {
  return entries.length === 0 ? "" : separator + JSON.stringify(entries).slice(1, -1);
}

/** The counters come last. */
function shownOf(entry: ConnectionView, times: TimeTexts) {
  const { metadata, destination, process, chain, providerChain, rule } = entry;
  const { id, network, inbound, source, dscp, acceptedAtMs } = metadata;
  return {
    id,
    metadata: {
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
    },
    start: times.of(acceptedAtMs),
    chains: chain.toReversed(), // the leaf comes first here
    providerChains: providerChain.toReversed(),
    rule: rule?.apiType ?? "",
    rulePayload: rule?.payload ?? "",
    upload: entry.uploadBytes,
    download: entry.downloadBytes,
  };
}
