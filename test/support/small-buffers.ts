import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { descriptorOf } from "#core/handover.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openLibc } from "#platform/linux/libc.ts";

const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const RECEIVE_BYTES = 256 * 1024;
const NARROW_BYTES = 4 * 1024;

const libc = process.platform === "linux" ? openLibc() : null;

/**
 * Fixes what the kernel keeps for a reader. Left alone it grows with what the reader once took, up to `tcp_rmem`, which
 * may be 32 MiB: then a test that counts what went out to a peer that does not read counts the kernel. Of a server: of
 * all that it accepts.
 */
export function fixReceiveBuffer(socket: Socket | Server): void {
  const fd = descriptorOf(socket);
  if (fd >= 0) setReceiveBuffer(fd, RECEIVE_BYTES); // it may be gone already
}

function setReceiveBuffer(fd: number, bytes: number): void {
  const value = new Uint8Array(Uint32Array.of(bytes).buffer);
  libc?.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, "SO_RCVBUF");
}

/** Its sockets are paused, and their kernel takes a few kilobytes: the rest of what they are sent stays with the sender. */
export async function openNarrowOrigin(
  on: (socket: Socket) => void,
): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, on).listen(0, LOOPBACK_V4);
  await once(server, "listening");
  setReceiveBuffer(descriptorOf(server), NARROW_BYTES);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}
