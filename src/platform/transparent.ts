/** Redirected and transparent sockets. On a system without them the error names the configuration keys. */
import { ConfigError } from "#core/errors.ts";
import { libcFor } from "./linux/libc.ts";
import type { RawEndpoint } from "./linux/sockaddr.ts";
import { originalDestination, setTransparent, TransparentSockets } from "./linux/transparent.ts";
import { Poller } from "./linux/uv-poll.ts";
import { ffiFor } from "./ffi.ts";

export type { Control } from "./linux/control-message.ts";
export type { RawEndpoint } from "./linux/sockaddr.ts";
export type { RawReplySocket, RawTransparentSocket } from "./linux/transparent.ts";
export type { TransparentSockets } from "./linux/transparent.ts";

const REDIR = "redir-port and listeners of type redir";
const TPROXY = "tproxy-port and listeners of type tproxy";

/**
 * Asks the kernel for the destination of an accepted connection before it was redirected; null when it was not.
 * `family` is that of the client's address, 4 for an IPv4-mapped one. Throws `ConfigError` where this system cannot
 * tell.
 */
export function openOriginalDestinations(
  system: string = process.platform,
): (fd: number, family: 4 | 6) => RawEndpoint | null {
  const libc = libcFor(REDIR, system);
  return (fd, family) => originalDestination(libc, fd, family);
}

/** Lets a listening socket accept what belongs to other addresses. Throws `ConfigError` where this system cannot. */
export function makeTransparent(fd: number, system: string = process.platform): void {
  setTransparent(libcFor(TPROXY, system), fd);
}

/** Throws `ConfigError` where this system has none. */
export function openTransparentSockets(system: string = process.platform): TransparentSockets {
  const libc = libcFor(TPROXY, system);
  const ffi = ffiFor(TPROXY, system);
  if (NARROW.has(process.arch))
    throw new ConfigError(`${TPROXY}: UDP needs a 64-bit system, this one is ${process.arch}`);
  return new TransparentSockets(ffi, libc, new Poller(ffi));
}

/** The structures of recvmmsg differ there. */
const NARROW: ReadonlySet<string> = new Set(["arm", "ia32", "mipsel"]);
