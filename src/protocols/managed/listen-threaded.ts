/** Listeners of QUIC that threads run where there are some, else the main thread. */
import type { InboundEnv } from "#core/inbound.ts";
import type { Endpoint } from "#core/session.ts";
import { type CongestionChoice, makeCongestion } from "#transport/quic/congestion/choice.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import type { ThreadedSpec } from "#transport/quic/remote/messages.ts";
import type { QuicServerOptions } from "#transport/quic/server/endpoint.ts";
import { QuicThreadsSlot } from "#transport/thread-slot.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { ServedClient, ServedEvents } from "#transport/quic/server/served.ts";
import type { SharableTlsServer } from "#transport/quic/server/tls.ts";

export interface ThreadedListener extends Pick<ThreadedSpec, "numbers" | "abortCode" | "closeCode"> {
  readonly tls: SharableTlsServer;
  readonly congestion: CongestionChoice;
  /** Null: datagrams go as they are. */
  readonly filter: PacketFilter | null;
  /** What the thread makes its filter of. */
  readonly filterSpec: ThreadedSpec["filter"];
  readonly onClient: (client: ServedClient) => ServedEvents;
}

export async function listenThreaded(
  env: InboundEnv,
  { tls, congestion, filter, filterSpec, onClient, ...common }: ThreadedListener,
): Promise<readonly Endpoint[]> {
  const ports = env.memory?.of(QuicPorts) ?? new QuicPorts();
  const threads = (await env.memory?.of(QuicThreadsSlot).get()) ?? null;
  const { clientAuthType, contexts } = tls;
  const here: QuicServerOptions = {
    ...common,
    ciphers: tls.ciphers,
    openTls: tls.open,
    makeCongestion: () => makeCongestion(congestion),
    filter,
    onConnection: onClient,
  };
  const spec: ThreadedSpec = { ...common, congestion, clientAuthType, filter: filterSpec };
  const keep = (part: Disposable): void => tls.keep(part);
  return env.listenUdp((socket) => ports.serve(socket, here, threads, { spec, contexts, keep, onClient }));
}
