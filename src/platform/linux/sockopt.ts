/** Socket options of socket(7) and ipv6(7) that Node does not offer. Numbers are those of the generic Linux ABI. */
import { constants } from "node:os";
import { interfaceNameFault } from "#core/fields.ts";
import type { SocketMaker, SocketOptions } from "#platform/socket-maker.ts";
import { SystemError, type Libc } from "./libc.ts";
import { IPV6_V6ONLY, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, SO_BINDTODEVICE, SO_MARK } from "./numbers.ts";
import { OwnPorts } from "./own-port.ts";
import { AF_INET, AF_INET6 } from "./sockaddr.ts";
import { uint32At } from "#lib/at.ts";

const SO_REUSEPORT = 15;
const IPPROTO_IPV6 = 41;

/** Kernel limit with the closing zero byte (IFNAMSIZ). */
const INTERFACE_NAME_BYTES = 16;

/** In the machine's own byte order, as the kernel reads an int. */
function int32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value >>> 0).buffer);
}

/** Needs CAP_NET_ADMIN, or CAP_NET_RAW since Linux 5.17. */
export function setMark(libc: Libc, fd: number, mark: number): void {
  libc.setsockopt(fd, SOL_SOCKET, SO_MARK, int32(mark), "routing-mark (SO_MARK, needs CAP_NET_ADMIN)");
}

/** While it is set, another socket of this user that has it, too, may be bound to an overlapping address. */
export function setReusePort(libc: Libc, fd: number, on: boolean): void {
  libc.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, int32(on ? 1 : 0), "SO_REUSEPORT");
}

export function markOf(libc: Libc, fd: number): number {
  const value = new Uint32Array(1);
  libc.getsockopt(fd, SOL_SOCKET, SO_MARK, new Uint8Array(value.buffer));
  return uint32At(value, 0);
}

/** Throws ENODEV where there is no such interface. A name longer than any would be cut by the kernel: another device. */
export function bindToDevice(libc: Libc, fd: number, name: string): void {
  const fault = interfaceNameFault(name);
  if (fault !== null) throw new SystemError(`interface-name: ${fault}`, constants.errno.ENODEV);
  const value = Buffer.from(`${name}\0`);
  libc.setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, value, `interface-name ${name} (SO_BINDTODEVICE)`);
}

/** Empty where the socket is bound to none. */
export function deviceOf(libc: Libc, fd: number): string {
  const value = Buffer.alloc(INTERFACE_NAME_BYTES);
  const length = libc.getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, value);
  return value.toString("latin1", 0, Math.max(0, length - 1));
}

export function openSocketMaker(libc: Libc, { routingMark, interfaceName }: SocketOptions): SocketMaker {
  const ports = new OwnPorts(libc);
  const make = (family: 4 | 6, type: number): number => {
    const fd = libc.socket(family === 4 ? AF_INET : AF_INET6, type);
    try {
      if (routingMark !== 0) setMark(libc, fd, routingMark);
      if (interfaceName !== "") {
        if (type === SOCK_STREAM) ports.take(fd, family); // UDP ports are not shared with other programs anyway
        bindToDevice(libc, fd, interfaceName);
      }
      if (family === 6 && type === SOCK_DGRAM)
        libc.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, int32(1), "IPV6_V6ONLY");
    } catch (error) {
      libc.close(fd);
      throw error;
    }
    return fd;
  };
  return {
    tcp: (family) => make(family, SOCK_STREAM),
    udp: (family) => make(family, SOCK_DGRAM),
    discard: (fd) => libc.close(fd),
  };
}
