import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import { openDnsServer } from "#dns/server.ts";
import { ANY_V6, parseIp } from "#net/address/ip.ts";
import { markDescriptor } from "#platform/portable.ts";
import { LeaseBook } from "./leases.ts";
import type { DnsStack } from "./names.ts";
import type { RuntimeEnv } from "./runtime-env.ts";

/** The server of `dns.listen`; a book without leases where there is none. */
export async function openDnsListener(
  { dns: { enable, listen, listenRoutingMark: mark } }: Config,
  { dns }: DnsStack,
  claims: Set<string>,
  { host, tolerant }: Pick<RuntimeEnv, "host" | "tolerant">,
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
  if (!enable || dns === null || hosts.length === 0) return book;
  try {
    await openDnsServer({
      listenTcp: (options) => book.listenTcp(options),
      listenUdp: (on) => book.listenUdp(on),
      log: host.log,
      handle: (message, by) => dns.handle(message, by),
    });
    return book;
  } catch (error) {
    await book[Symbol.asyncDispose]();
    if (!tolerant) throw new Error(`dns.listen: ${messageOf(error)}`, { cause: error });
    host.log.error(`dns.listen: ${messageOf(error)}`);
    return book;
  }
}
