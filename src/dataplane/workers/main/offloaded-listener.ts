import type { Endpoint } from "#core/session.ts";
import type { OffloadOptions } from "#net/listen/accept-offload.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { isWildcard } from "#platform/linux/sockaddr.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import type { WorkerTlsContexts } from "./tls-contexts.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** A listening socket as the kernel knows it. */
export interface ListeningName {
  /** Its own address. */
  readonly local: Endpoint;
  /** That is where all its clients come to, too. */
  readonly isBound: boolean;
}

/** A listener whose clients are accepted by workers. */
export interface Listener extends ListeningName {
  readonly options: OffloadOptions;
  /** Workers from which clients may still come. */
  readonly open: Set<WorkerHandle>;
  /** What its clients' handshakes are done by; null: they begin without TLS. */
  readonly contexts: WorkerTlsContexts | null;
  readonly done: PromiseWithResolvers<void>;
}

export function nameOf(fd: number, calls: AcceptCalls, sockaddrs: Sockaddrs): ListeningName {
  const isKnown = calls.localName(fd) >= 0;
  const { address } = calls;
  return { local: sockaddrs.local(address), isBound: isKnown && !isWildcard(address) };
}

/** What workers do with its clients: an index in `HANDSHAKES`; negative: they cannot begin. */
export function handshakeOf(options: OffloadOptions): number {
  const showsFirst = options.handshake === "tls" && options.showsFirst === true;
  const begins = showsFirst ? "tls-first-bytes" : options.handshake;
  return HANDSHAKES.findIndex((one) => one === begins);
}

/** Empty: its clients ask for no switch, or the event loop answers them. */
export function upgradePathOf(options: OffloadOptions): string {
  const shows = options.handshake === "first-bytes" || (options.handshake === "tls" && options.showsFirst);
  return shows === true ? (options.upgradePath ?? "") : "";
}
