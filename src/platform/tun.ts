/** TUN devices and what they need. On a system without them the error names the configuration key. */
import { ConfigError } from "#core/errors.ts";
import { EchoSocket, type OnEchoReply } from "./linux/icmp.ts";
import { IdleTun } from "./linux/idle-tun.ts";
import { libcOf } from "./linux/libc.ts";
import { TunDevices } from "./linux/tun.ts";
import { Poller } from "./linux/uv-poll.ts";
import type { SocketOptions } from "./socket-maker.ts";
import { openFfi, ffiFor } from "./ffi.ts";

export {
  CHECKSUM_VALID,
  GSO_TCP,
  GSO_UDP,
  isNameTaken,
  MOST_PACKET_BYTES,
  NEEDS_CHECKSUM,
  PACKET_AT,
  VNET_BYTES,
} from "./linux/tun.ts";
export type { EchoSocket } from "./linux/icmp.ts";
export type { IdleTun } from "./linux/idle-tun.ts";
export type { PacketDevice, PacketBuffer, TunAsk, TunDevice, TunDevices } from "./linux/tun.ts";

/** Throws `ConfigError` or `SystemError`: EBUSY where another program holds the device. */
export function openIdleTun(key: string, name: string): IdleTun {
  openTunDevices(key); // says what this system lacks
  return new IdleTun(ffiFor(key), name);
}

/** Throws `ConfigError` where this system has no TUN that this program can use. */
export function openTunDevices(key: string, system: string = process.platform): TunDevices {
  const ffi = ffiFor(key, system);
  if (NARROW.has(process.arch))
    throw new ConfigError(`${key}: needs a 64-bit system, this one is ${process.arch}`);
  return new TunDevices(ffi, new Poller(ffi));
}

/** Pings of our own. Null where this system has none. Throws `SystemError` where the process may not. */
export function openEchoSocket(family: 4 | 6, options: SocketOptions, on: OnEchoReply): EchoSocket | null {
  const ffi = openFfi();
  if (ffi === null) return null;
  return new EchoSocket(ffi, libcOf(ffi), new Poller(ffi), { family, options, on });
}

/** The structures that the kernel reads differ there. */
const NARROW: ReadonlySet<string> = new Set(["arm", "ia32", "mipsel"]);
