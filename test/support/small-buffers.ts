import type { Socket } from "node:net";
import { descriptorOf } from "#net/accept.ts";
import { openLibc } from "#platform/linux/libc.ts";

const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const RECEIVE_BYTES = 256 * 1024;

const libc = process.platform === "linux" ? openLibc() : null;

/**
 * Fixes what the kernel keeps for a reader. Left alone it grows with what the reader once took, up to `tcp_rmem`, which
 * may be 32 MiB: then a test that counts what went out to nobody counts the kernel.
 */
export function fixReceiveBuffer(socket: Socket): void {
  const fd = descriptorOf(socket);
  if (fd < 0) return; // gone already
  const value = new Uint8Array(Uint32Array.of(RECEIVE_BYTES).buffer);
  libc?.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, "SO_RCVBUF");
}
