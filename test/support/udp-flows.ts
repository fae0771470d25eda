/** Datagrams through a SOCKS5 listener or a tunnel, one at a time, so that none is lost to a full buffer. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Order } from "./flow-order.ts";
import { openSocksUdp } from "./socks-udp.ts";
import type { HostPort } from "./tunnels.ts";

export interface UdpPath {
  readonly proxy: number;
  /** Set: datagrams go straight to this listener. */
  readonly tunnel: number | null;
  readonly from: string;
  readonly to: HostPort;
}

const ANSWER_MS = 5_000;
const MOST_PAYLOAD = 1_200;
const MOST_DATAGRAMS = 20;
const SOCKS_HEAD_BYTES = 10;
/** A path of a core lives on for a while: a port that came back would be counted as the flow before. */
const FIRST_PORT = 20_000;
const PORTS = 12_000; // below those that the system gives to others
let flows = 0; // names and ports differ within the process

/** `upload` and `download` say how large the datagrams are; there are up to twenty. */
export async function datagramsThrough({ proxy, tunnel, from, to }: UdpPath, order: Order): Promise<void> {
  const number = ++flows;
  const name = `${process.pid}-${number}`;
  using relay = tunnel === null ? await openSocksUdp(proxy, from) : null;
  const socket = createSocket("udp4");
  try {
    socket.bind(FIRST_PORT + (number % PORTS), from);
    await once(socket, "listening");
    const head = Uint8Array.of(0, 0, 0, 1, ...to.host.split(".").map(Number), to.port >> 8, to.port & 0xff);
    const count = 1 + (order.upload % MOST_DATAGRAMS);
    for (let at = 0; at < count; at++) {
      const wanted = 1 + ((order.download + at * 97) % MOST_PAYLOAD);
      const line = `U ${order.device} ${order.target} ${wanted} ${name}\n`;
      const payload = Buffer.alloc(Math.max(line.length, (order.upload + at * 131) % MOST_PAYLOAD), ".");
      payload.write(line, "latin1");
      const answered = once(socket, "message", { signal: AbortSignal.timeout(ANSWER_MS) });
      socket.send(
        relay === null ? payload : Buffer.concat([head, payload]),
        relay?.port ?? (tunnel as number),
        "127.0.0.1",
      );
      const [reply] = (await answered) as [Buffer];
      const size = reply.length - (relay === null ? 0 : SOCKS_HEAD_BYTES);
      if (size !== wanted) throw new Error(`a datagram of ${size} bytes for one of ${wanted}`);
    }
  } finally {
    socket.close();
  }
}
