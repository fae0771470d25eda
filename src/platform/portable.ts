/** What only some systems can do. Elsewhere the error names the configuration key. */
import { openLibc, libcFor } from "./linux/libc.ts";
import { bindToDevice, openSocketMaker, setMark, setReusePort } from "./linux/sockopt.ts";
import type { SocketMaker, SocketOptions } from "./socket-maker.ts";

/**
 * Sockets that carry a mark or leave through one interface. Null where neither is wanted: the ordinary sockets of the
 * runtime do. Throws `ConfigError` where this system cannot do what is wanted.
 */
export function openSockets(options: SocketOptions, system: string = process.platform): SocketMaker | null {
  if (options.routingMark === 0 && options.interfaceName === "") return null;
  const key = options.routingMark !== 0 ? "routing-mark" : "interface-name";
  return openSocketMaker(libcFor(key, system), options);
}

/** Marks an open socket (SO_MARK). Throws `ConfigError` where this system cannot. */
export function markDescriptor(fd: number, mark: number, system: string = process.platform): void {
  setMark(libcFor("routing-mark", system), fd, mark);
}

/** Binds an open socket to a device (SO_BINDTODEVICE). Throws `ConfigError` where this system cannot. */
export function bindDescriptor(fd: number, device: string): void {
  bindToDevice(libcFor("interface-name"), fd, device);
}

/** Switches SO_REUSEPORT of open sockets. False, with nothing done: this system needs or has no such thing. */
export function allowOverlap(descriptors: readonly number[], on: boolean): boolean {
  const libc = process.platform === "linux" ? openLibc() : null;
  if (libc === null) return false;
  for (const fd of descriptors) setReusePort(libc, fd, on);
  return true;
}
