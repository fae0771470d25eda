/** A SOCKS5 server of which tests learn what a node is asked for. It reaches nothing: what comes is sent back. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { destinationText } from "#core/session.ts";
import { decodeSocksAddress } from "#net/address/socks-address.ts";
import { openTcpOrigin } from "./origin.ts";

export interface RecordingSocks extends AsyncDisposable {
  readonly port: number;
  /** `tcp name:443`, `udp 192.0.2.1:53`, in the order in which they came. */
  readonly asked: string[];
}

const HEADER_BYTES = 3;

/** `greeting` is sent to every TCP client that got its connection, before anything else. */
export async function openRecordingSocks(greeting = ""): Promise<RecordingSocks> {
  const asked: string[] = [];
  const udp = createSocket("udp4");
  udp.on("message", (bytes, from) => {
    const decoded = decodeSocksAddress(bytes, HEADER_BYTES);
    if (decoded !== null) asked.push(`udp ${destinationText(decoded.destination)}`);
    udp.send(bytes, from.port, from.address);
  });
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  const { port: udpPort } = udp.address() as AddressInfo;
  const tcp = await openTcpOrigin((socket) => serve(socket, { asked, greeting, udpPort }));
  return {
    port: tcp.port,
    asked,
    async [Symbol.asyncDispose]() {
      udp.close();
      await tcp[Symbol.asyncDispose]();
    },
  };
}

interface Served {
  readonly asked: string[];
  readonly greeting: string;
  readonly udpPort: number;
}

/** Method negotiation (RFC 1928 §3), a request (§4), then an echo. */
function serve(socket: Socket, { asked, greeting, udpPort }: Served): void {
  let bytes = Buffer.alloc(0);
  let isGreeted = false;
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    if (!isGreeted) {
      const size = 2 + (bytes[1] ?? Infinity);
      if (bytes.length < size) return;
      bytes = bytes.subarray(size);
      isGreeted = true;
      socket.write(Uint8Array.of(5, 0));
    }
    const decoded = bytes.length <= HEADER_BYTES ? null : decodeSocksAddress(bytes, HEADER_BYTES);
    if (decoded === null) return;
    const isUdp = bytes[1] === 3;
    if (!isUdp) asked.push(`tcp ${destinationText(decoded.destination)}`);
    socket.off("data", onData);
    socket.write(Uint8Array.of(5, 0, 0, 1, 127, 0, 0, 1, udpPort >> 8, udpPort & 0xff));
    if (!isUdp) socket.write(greeting);
    socket.write(bytes.subarray(decoded.next));
    socket.pipe(socket);
  };
  socket.on("data", onData);
}
