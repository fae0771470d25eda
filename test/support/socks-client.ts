/** A SOCKS5 client that asks for addresses, as a program behind a transparent proxy would, or for names. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { destinationText } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { decodeSocksAddress, encodeSocksAddress } from "#net/address/socks-address.ts";
import { openRawClient, type RawClient } from "./raw-client.ts";

const CONNECT = 1;
const ASSOCIATE = 3;

async function request(proxyPort: number, command: number, host: string, port: number) {
  const client = await openRawClient(proxyPort);
  client.send(Uint8Array.of(5, 1, 0));
  assert.deepEqual([...(await client.read(2))], [5, 0]);
  client.send(Uint8Array.of(5, command, 0, ...encodeSocksAddress(toDestination(host, port))));
  const reply = await client.read(10);
  return { client, status: reply[1] as number, boundPort: reply.readUInt16BE(8) };
}

/** A connection with an address or a name; `status` 0 says that the proxy called it open. */
export async function socksConnect(
  proxyPort: number,
  host: string,
  port: number,
): Promise<{ readonly client: RawClient; readonly status: number }> {
  return request(proxyPort, CONNECT, host, port);
}

export interface SocksUdp extends Disposable {
  send(payload: Uint8Array, host: string, port: number): void;
  /** The next datagram, with the address that it seems to come from. */
  next(): Promise<{ readonly payload: Buffer; readonly from: string }>;
}

export async function socksAssociate(proxyPort: number): Promise<SocksUdp> {
  const { client, boundPort } = await request(proxyPort, ASSOCIATE, "0.0.0.0", 0);
  const socket = createSocket("udp4");
  const arrived: Buffer[] = [];
  let wake = (): void => {};
  socket.on("message", (bytes) => {
    arrived.push(bytes);
    wake();
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    send(payload, host, port) {
      const header = Uint8Array.of(0, 0, 0, ...encodeSocksAddress(toDestination(host, port)));
      socket.send(Buffer.concat([header, payload]), boundPort, "127.0.0.1");
    },
    async next() {
      while (arrived.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const bytes = arrived.shift() as Buffer;
      const from = decodeSocksAddress(bytes, 3);
      assert.ok(from !== null);
      return { payload: bytes.subarray(from.next), from: destinationText(from.destination) };
    },
    [Symbol.dispose]() {
      socket.close();
      client[Symbol.dispose]();
    },
  };
}
