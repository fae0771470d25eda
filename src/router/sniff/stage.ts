/** Which connections are sniffed, for how long, and how the name is used (configuration.md §7). */
import { isInRanges, type Range } from "#core/ranges.ts";
import type { Log } from "#core/log.ts";
import type { DnsMode } from "#core/router.ts";
import { destinationText } from "#core/session.ts";
import type { Destination, Ip, Metadata, StreamSession } from "#core/session.ts";
import type { DatagramWatch, Sniffed, SniffedStreams, Sniffer } from "#core/sniffer.ts";
import { peekStream } from "#net/listen/peek.ts";
import { SniffFailures } from "./failures.ts";
import type { Probe, SniffProtocol } from "./probe.ts";

export interface SniffPolicy {
  readonly protocols: readonly SniffedProtocol[];
  /** Sniff connections whose name came from the mapping of redir-host. */
  readonly forceDnsMapping: boolean;
  /** Sniff connections without a name. */
  readonly parsePureIp: boolean;
  /** Is there a name for which `isForced` holds? */
  readonly forcesNames: boolean;
  /** Names that are looked at in any case. */
  isForced(host: string): boolean;
  /** Sniffed names that are thrown away. */
  isSkipped(host: string): boolean;
  skipsSource(ip: Ip): boolean;
  skipsDestination(ip: Ip): boolean;
}

export interface SniffedProtocol {
  readonly protocol: SniffProtocol;
  readonly ports: readonly Range[];
  readonly overridesDestination: boolean;
}

export interface SniffEnv {
  /** The facts about a destination before any byte is inspected. */
  prepare(destination: Destination): { readonly destination: Destination; readonly dnsMode: DnsMode };
  readonly log: Log;
  nowMs(): number;
}

/** For the first bytes of a client, and for all of a hello that comes in pieces. */
const STREAM_MS = 1000;
/** For the other datagrams of a first flight, which is sent at once. */
const DATAGRAMS_MS = 300;
const MAX_STREAM_BYTES = 32 * 1024;

/** What is looked at, while it is looked at. */
interface Look {
  /** The destination as text. */
  readonly asked: string;
  /** Failures are counted by client and destination: no client shall switch off what rules see of others. */
  readonly failing: string;
  readonly isForced: boolean;
  /** Those that have not given up, with what their name would be used for. */
  readonly probes: Set<{ readonly probe: Probe; readonly overridesDestination: boolean }>;
}

export class SniffStage implements Sniffer {
  readonly #policy: SniffPolicy;
  readonly #env: SniffEnv;
  readonly #failures: SniffFailures;

  constructor(policy: SniffPolicy, env: SniffEnv) {
    this.#policy = policy;
    this.#env = env;
    this.#failures = new SniffFailures(env.nowMs);
  }

  get streams(): SniffedStreams {
    const { protocols, parsePureIp: addresses, forcesNames: names } = this.#policy;
    const ofStreams = protocols.filter(({ protocol }) => protocol.network === "tcp");
    return { ports: ofStreams.flatMap(({ ports }) => ports), addresses, names };
  }

  wants(metadata: Metadata): boolean {
    return this.#lookAt(metadata) !== null;
  }

  readStream(session: StreamSession, signal: AbortSignal): Promise<Sniffed | null> | null {
    const look = this.#lookAt(session.metadata);
    return look === null ? null : this.#readStream(session, look, signal);
  }

  async #readStream(session: StreamSession, look: Look, signal: AbortSignal): Promise<Sniffed | null> {
    let found: Sniffed | "more" | "other" = "more";
    await peekStream(session.stream, {
      look: (piece) => (found = feed(look, piece)) !== "more",
      onWait: () => session.reply(null),
      timeoutMs: STREAM_MS,
      maxBytes: MAX_STREAM_BYTES,
      signal,
    });
    return signal.aborted ? null : this.#conclude(look, found);
  }

  watchDatagrams(metadata: Metadata, signal: AbortSignal): DatagramWatch | null {
    const look = this.#lookAt(metadata);
    if (look === null) return null;
    const { promise: result, resolve } = Promise.withResolvers<Sniffed | null>();
    let timer: NodeJS.Timeout | null = null;
    let done = false;
    const finish = (found: Sniffed | "more" | "other"): void => {
      if (done) return;
      done = true;
      if (timer !== null) clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(signal.aborted ? null : this.#conclude(look, found));
    };
    const onAbort = (): void => finish("other");
    signal.addEventListener("abort", onAbort);
    return {
      result,
      feed(payload) {
        if (done) return;
        const found = feed(look, payload);
        if (found !== "more") finish(found);
        else timer ??= setTimeout(() => finish("more"), DATAGRAMS_MS);
      },
    };
  }

  /** Null: not to be looked at. */
  #lookAt({ network, source, destination }: Metadata): Look | null {
    const policy = this.#policy;
    const protocols = this.#protocolsFor(network, destination.port);
    if (protocols.length === 0 || policy.skipsSource(source.ip)) return null;
    const { destination: known, dnsMode } = this.#env.prepare(destination);
    const { host, ip } = known;
    if (ip !== null && policy.skipsDestination(ip)) return null;
    const isForced = host !== null && policy.isForced(host);
    const isWanted = host === null ? policy.parsePureIp : dnsMode === "redir-host" && policy.forceDnsMapping;
    const asked = destinationText(known);
    const failing = `${source.ip} ${asked}`;
    if (!isForced && (!isWanted || this.#failures.isHopeless(failing))) return null;
    const open = ({ protocol, overridesDestination }: SniffedProtocol) => ({
      probe: protocol.open(),
      overridesDestination,
    });
    return { asked, failing, isForced, probes: new Set(protocols.map(open)) };
  }

  #protocolsFor(network: Metadata["network"], port: number): readonly SniffedProtocol[] {
    return this.#policy.protocols.filter(
      ({ protocol, ports }) => protocol.network === network && isInRanges(ports, port),
    );
  }

  #conclude({ asked, failing, isForced }: Look, found: Sniffed | "more" | "other"): Sniffed | null {
    const { log } = this.#env;
    if (typeof found === "string") {
      if (!isForced) this.#failures.failed(failing);
      log.debug(() => `[Sniffer] ${asked}: ${found === "more" ? "no name in time" : "no name"}`);
      return null;
    }
    this.#failures.worked(failing);
    if (this.#policy.isSkipped(found.host)) {
      log.debug(() => `[Sniffer] ${asked}: skipped ${found.host}`);
      return null;
    }
    log.debug(() => `[Sniffer] ${asked}: ${found.host}`);
    return found;
  }
}

function feed({ probes }: Look, bytes: Uint8Array): Sniffed | "more" | "other" {
  for (const entry of probes) {
    const verdict = entry.probe.feed(bytes);
    if (verdict === "more") continue;
    if (verdict !== "other") return { host: verdict.host, overridesDestination: entry.overridesDestination };
    probes.delete(entry);
  }
  return probes.size === 0 ? "other" : "more";
}
