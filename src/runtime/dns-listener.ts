import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import { openDnsServer } from "#dns/server.ts";
import { ANY_V6, parseIp } from "#net/address/ip.ts";
import { markDescriptor } from "#platform/portable.ts";
import { LeaseBook } from "./leases.ts";
import type { RuntimeEnv } from "./runtime-env.ts";

/**
 * The server of `dns.listen`; a book without leases where there is none. Its TCP connections outlive a reload: every message
 * is answered by the engine in force.
 */
export async function openDnsListener(
  { dns: { enable, listen, listenRoutingMark: mark } }: Config,
  claims: Set<string>,
  { host, inForce, tolerant }: Pick<RuntimeEnv, "host" | "inForce" | "tolerant">,
): Promise<LeaseBook> {
  const ip = listen === null ? null : listen.host === "" ? ANY_V6 : parseIp(listen.host);
  const hosts = ip === null ? [] : [ip];
  const book = new LeaseBook(host.sockets, {
    owner: "dns.listen",
    servesDns: true,
    hosts,
    ports: [listen?.port ?? 0],
    claims,
    ...(mark === 0 ? {} : { configure: (fd: number) => markDescriptor(fd, mark) }),
  });
  if (!enable || hosts.length === 0) return book;
  try {
    await openDnsServer({
      listenTcp: (options) => book.listenTcp(options),
      listenUdp: (on) => book.listenUdp(on),
      log: host.log,
      handle: inForce.handleDns,
      onSettled: () => host.memoryRelease.soon(),
    });
    return book;
  } catch (error) {
    await book[Symbol.asyncDispose]();
    if (!tolerant) throw new Error(`dns.listen: ${messageOf(error)}`, { cause: error });
    host.log.error(`dns.listen: ${messageOf(error)}`);
    return book;
  }
}
