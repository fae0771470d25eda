import type { Config } from "#config/config.ts";
import { openQuicDnsServer, quicDnsAlpn } from "#dns/quic-server.ts";
import type { PerClientLimiter } from "#lib/in-flight.ts";
import { openQuicTlsServer } from "#transport/quic/server/tls.ts";
import type { LeaseBook } from "./leases.ts";
import type { RuntimeEnv } from "./runtime-env.ts";

export type QuicDnsProtocols = keyof typeof quicDnsAlpn;

export interface QuicDnsListener {
  /** The key that names it in errors. */
  readonly owner: string;
  readonly protocols: QuicDnsProtocols;
  /** Bounds what each client asks, over all listeners. */
  readonly questions: PerClientLimiter;
}

interface OfConfig {
  readonly config: Config;
  readonly env: Pick<RuntimeEnv, "host" | "inForce">;
}

/** A socket of `dns.listen-quic` or `listen-h3`, with the certificate of the `tls` block. Throws where it cannot be. */
export async function openQuicDnsListener(
  book: LeaseBook,
  life: AsyncDisposableStack,
  { owner, protocols, questions, config, env: { host, inForce } }: QuicDnsListener & OfConfig,
): Promise<void> {
  const { certificate, privateKey } = config.tls;
  const keys = { certificate, "private-key": privateKey, "client-auth-type": "" } as const;
  const { files, log, memory } = host;
  const tls = life.use(
    await openQuicTlsServer(keys, {
      where: owner,
      alpn: quicDnsAlpn[protocols],
      tls: host.tls[config.general.relay],
      files,
      log,
      mayBeEarly: true, // a question that is asked twice changes nothing (RFC 9250 §4.5)
    }),
  );
  const listenUdp: LeaseBook["listenUdp"] = (on) => book.listenUdp(on);
  await openQuicDnsServer({ tls, questions, log, memory, handle: inForce.handleDns, listenUdp });
}
