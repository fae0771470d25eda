import type { Config } from "#config/config.ts";
import type { ListenHost } from "#core/dns-options.ts";
import type { Endpoint } from "#core/endpoint.ts";
import { messageOf } from "#core/errors.ts";
import type { PerClientLimiter } from "#lib/in-flight.ts";
import { dnsQuestions, openDnsServer } from "#dns/server.ts";
import { ANY_V6, parseIp } from "#net/address/ip.ts";
import { markDescriptor } from "#platform/portable.ts";
import { LeaseBook } from "./leases.ts";
import type { QuicDnsListener, QuicDnsProtocols } from "./quic-dns-listener.ts";
import type { RuntimeEnv } from "./runtime-env.ts";

type DnsListenerEnv = Pick<RuntimeEnv, "host" | "inForce" | "tolerant">;

/** A key of the file, and the address that it has opened. */
export interface DnsAddress {
  readonly owner: string;
  readonly endpoint: Endpoint;
}

/** Sockets on which clients ask. Nothing arrives before `activate`. */
export interface DnsListeners extends AsyncDisposable {
  readonly addresses: readonly DnsAddress[];
  activate(): void;
}

/** One of them. */
interface Listening {
  /** The key that names it. */
  readonly owner: string;
  readonly at: ListenHost;
  /** Throws where it cannot be. */
  readonly open: (book: LeaseBook, life: AsyncDisposableStack) => Promise<unknown>;
}

/**
 * The servers of `dns.listen`, `listen-quic` and `listen-h3`. Connections outlive a reload: every message is answered by the
 * engine in force.
 */
export async function openDnsListeners(
  config: Config,
  claims: Set<string>,
  env: DnsListenerEnv,
): Promise<DnsListeners> {
  const { host, tolerant } = env;
  const { enable, listenRoutingMark: mark } = config.dns;
  const books: LeaseBook[] = [];
  const addresses: DnsAddress[] = [];
  await using life = new AsyncDisposableStack();
  for (const { owner, at, open } of enable ? listeningOf(config, env, dnsQuestions()) : []) {
    const ip = at.host === "" ? ANY_V6 : parseIp(at.host);
    if (ip === null) continue;
    await using opened = new AsyncDisposableStack();
    const configure = mark === 0 ? {} : { configure: (fd: number) => markDescriptor(fd, mark) };
    const ask = { owner, servesDns: true, hosts: [ip], ports: [at.port], claims, ...configure };
    const book = opened.use(new LeaseBook(host.sockets, ask));
    try {
      await open(book, opened);
      books.push(book);
      addresses.push({ owner, endpoint: { ip, port: at.port } });
      life.use(opened.move());
    } catch (error) {
      if (!tolerant) throw new Error(`${owner}: ${messageOf(error)}`, { cause: error });
      host.log.error(`${owner}: ${messageOf(error)}`);
    }
  }
  const kept = life.move();
  return {
    addresses,
    activate: () => books.forEach((book) => book.activate()),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function listeningOf(config: Config, env: DnsListenerEnv, questions: PerClientLimiter): readonly Listening[] {
  const { listen, listenQuic, listenH3 } = config.dns;
  const isShared = listenQuic !== null && isSame(listenQuic, listenH3);
  const { certificate, privateKey } = config.tls;
  const quic = (owner: string, at: ListenHost | null, protocols: QuicDnsProtocols): readonly Listening[] =>
    at === null || certificate === "" || privateKey === ""
      ? []
      : [{ owner, at, open: openQuic(config, env, { owner, protocols, questions }) }];
  return [
    ...(listen === null ? [] : [{ owner: "dns.listen", at: listen, open: openPlain(env, questions) }]),
    ...quic("dns.listen-quic", listenQuic, isShared ? "both" : "doq"),
    ...(isShared ? [] : quic("dns.listen-h3", listenH3, "http3")),
  ];
}

/** The program of QUIC is loaded where it is asked for only. */
function openQuic(config: Config, env: DnsListenerEnv, listener: QuicDnsListener): Listening["open"] {
  return async (book, life) => {
    const { openQuicDnsListener } = await import("./quic-dns-listener.ts");
    await openQuicDnsListener(book, life, { ...listener, config, env });
  };
}

function openPlain({ host, inForce }: DnsListenerEnv, questions: PerClientLimiter): Listening["open"] {
  return (book) =>
    openDnsServer({
      listenTcp: (options) => book.listenTcp(options),
      listenUdp: (on) => book.listenUdp(on),
      log: host.log,
      questions,
      handle: inForce.handleDns,
      onSettled: () => host.memoryRelease.soon(),
    });
}

function isSame(one: ListenHost, other: ListenHost | null): boolean {
  return one.host === other?.host && one.port === other.port;
}
