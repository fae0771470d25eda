/** A port whose clients wait in the kernel, with what they say, until a listener takes it over. */
import { once } from "node:events";
import { createServer } from "node:net";
import { descriptorOf } from "#core/handover.ts";
import { boundAddress } from "#core/sockets.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { InheritedSockets } from "#net/listen/inherited-sockets.ts";
import { keyOf } from "#net/listen/lease.ts";
import type { ListenAsk } from "#net/listen/listen-ask.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { fixReceiveBuffer } from "./small-buffers.ts";

export interface HeldPort {
  readonly port: number;
  /** Its first listener, of the same `ask`, gets the port. */
  readonly pool: SocketPool;
}

/** The kernel keeps some 200 KB of what each client says. */
export async function openHeldPort(calls: Pick<RelayCalls, "duplicate">, ask: ListenAsk): Promise<HeldPort> {
  const server = createServer().listen(0, LOOPBACK_V4);
  await once(server, "listening");
  fixReceiveBuffer(server);
  const { port } = boundAddress(server);
  const inherited = new InheritedSockets();
  inherited.add({
    key: `tcp ${keyOf(ask)}`,
    fd: calls.duplicate(descriptorOf(server)),
    endpoint: { ip: LOOPBACK_V4, port },
  });
  server.close(); // the socket stays open by the other descriptor
  return { port, pool: new SocketPool(() => {}, inherited) };
}
