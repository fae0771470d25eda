/** A client of QUIC on loopback, on a real socket. */
import assert from "node:assert/strict";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { quicLibrary } from "#platform/quic.ts";
import { QuicClient, type QuicClientOptions } from "#transport/quic/client.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { openQuicClientTls } from "./quic-tls.ts";
import { literalsOnly } from "./resolvers.ts";

export async function dialQuic(
  port: number,
  options: Partial<QuicClientOptions> = {},
  signal = AbortSignal.timeout(10_000),
): Promise<QuicClient> {
  const library = quicLibrary();
  assert.ok(library !== null);
  const server = toDestination("127.0.0.1", port);
  const dialer = openDirectDialer({ resolver: literalsOnly });
  return QuicClient.open(
    {
      node: "visitor",
      flow: await dialer.associate(server, { signal, metadata: null }),
      server,
      filter: null,
      ciphers: library.ciphers,
      openTls: options.openTls ?? (await openQuicClientTls()),
      congestion: new NewReno(),
      onDatagram() {},
      onStream: (stream) => void stream.on("error", () => {}).resume(),
      ...options,
    },
    signal,
  );
}
