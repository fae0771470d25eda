/** Sockets that take and send what belongs to other addresses: tproxy (ip(7), ipv6(7), Documentation/networking/tproxy). */
import type * as Ffi from "node:ffi";
import { SystemError, type Libc } from "./libc.ts";
import { IP_ORIGDSTADDR, IPV6_ORIGDSTADDR, SO_ORIGINAL_DST, SOL_IP, SOL_IPV6 } from "./control-message.ts";
import { ReceiveBatch, type OnReceived } from "./receive-batch.ts";
import {
  AF_INET,
  AF_INET6,
  decodeSockaddr,
  encodeSockaddr,
  SOCKADDR_BYTES,
  type RawEndpoint,
} from "./sockaddr.ts";
import { SendBatch } from "./send-batch.ts";
import { setMark } from "./sockopt.ts";
import { cutsMessages, joinDatagrams, tellMarks, widenBuffers } from "./udp-options.ts";
import type { Poller, Watch } from "./uv-poll.ts";
import { IPV6_V6ONLY, SOCK_DGRAM, SOL_SOCKET } from "./numbers.ts";
import { int32At } from "#lib/at.ts";

const SO_REUSEADDR = 2;
const SO_DOMAIN = 39;
const IP_TRANSPARENT = 19;
const IPV6_TRANSPARENT = 75;

const SIGNATURES = {
  bind: { arguments: ["i32", "pointer", "i32"], return: "i32" },
  getsockname: { arguments: ["i32", "pointer", "pointer"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** An unconnected socket at an address that is not this machine's. */
export interface RawReplySocket {
  /**
   * Sent at the end of the turn of the event loop; a datagram that the kernel refuses then is lost. `payload` is
   * copied; `name` is a sockaddr that must not change, the same object for the same peer.
   */
  send(payload: Uint8Array, name: Uint8Array): void;
  close(): void;
}

export interface RawTransparentSocket {
  readonly fd: number;
  readonly local: RawEndpoint;
  /** Begins to read; a later call replaces the receiver. */
  receive(on: OnReceived): void;
  /** Reads no more: what comes is for another process that has the socket. */
  pause(): void;
  close(): void;
}

/** Where a redirected connection was going, from the kernel's connection tracking. Null: it was not redirected. */
export function originalDestination(libc: Libc, fd: number, family: 4 | 6): RawEndpoint | null {
  const value = new Uint8Array(SOCKADDR_BYTES);
  try {
    const length = libc.getsockopt(fd, family === 4 ? SOL_IP : SOL_IPV6, SO_ORIGINAL_DST, value);
    return decodeSockaddr(value.subarray(0, length));
  } catch {
    return null; // ENOENT: connection tracking does not know it; EOPNOTSUPP, ENOPROTOOPT: there is none
  }
}

/** Throws where the process may not: CAP_NET_ADMIN is needed. */
export function setTransparent(libc: Libc, fd: number): void {
  set(libc, fd, SOL_IP, IP_TRANSPARENT, "IP_TRANSPARENT (needs CAP_NET_ADMIN)");
  if (domainOf(libc, fd) === AF_INET6)
    set(libc, fd, SOL_IPV6, IPV6_TRANSPARENT, "IPV6_TRANSPARENT (needs CAP_NET_ADMIN)");
}

function domainOf(libc: Libc, fd: number): number {
  const value = new Int32Array(1);
  libc.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, new Uint8Array(value.buffer));
  return int32At(value, 0);
}

function set(libc: Libc, fd: number, level: number, option: number, what: string, value = 1): void {
  libc.setsockopt(fd, level, option, new Uint8Array(Int32Array.of(value).buffer), what);
}

export class TransparentSockets {
  readonly #libc: Libc;
  readonly #poller: Poller;
  readonly #receiving: ReceiveBatch;
  readonly #sending: SendBatch;
  readonly #library;
  readonly #errno: Int32Array;
  /** Lent to the kernel for the length of a call. */
  readonly #address = new Uint8Array(new ArrayBuffer(SOCKADDR_BYTES));
  readonly #addressPointer: bigint;

  constructor(ffi: typeof Ffi, libc: Libc, poller: Poller) {
    this.#libc = libc;
    this.#poller = poller;
    this.#receiving = new ReceiveBatch(ffi);
    this.#sending = new SendBatch(ffi, cutsMessages(libc));
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.#addressPointer = ffi.getRawPointer(this.#address);
  }

  /** `overlap`: another socket of ours has the port already. `::` takes both families. Throws `SystemError`. */
  listen(at: RawEndpoint, overlap: boolean): RawTransparentSocket {
    const fd = this.#open(at, false);
    const libc = this.#libc;
    try {
      const reuse = () => set(libc, fd, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
      if (overlap) reuse();
      this.#setUp(fd, at);
      this.#bind(fd, at);
      // From now on replies may be sent from the same port of other addresses. Not before: a second program that
      // listens here by mistake must fail.
      reuse();
      return this.#listening(fd, this.#localOf(fd));
    } catch (error) {
      libc.close(fd);
      throw error;
    }
  }

  /** Goes on with one that another process has opened by `listen`; the descriptor is owned from here on. Throws `SystemError`. */
  adopt(fd: number): RawTransparentSocket {
    try {
      const local = this.#localOf(fd);
      this.#setUp(fd, local); // the other process may be of another version
      return this.#listening(fd, local);
    } catch (error) {
      this.#libc.close(fd);
      throw error;
    }
  }

  /** A socket that sends as if it were `from`. Throws `SystemError`: EADDRINUSE where a local service has the port. */
  replyAs(from: RawEndpoint, mark: number): RawReplySocket {
    const fd = this.#open(from, true);
    const libc = this.#libc;
    try {
      if (mark !== 0) setMark(libc, fd, mark);
      set(libc, fd, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
      this.#bind(fd, from);
    } catch (error) {
      libc.close(fd);
      throw error;
    }
    const outgoing = this.#sending.open(fd);
    let open = true;
    return {
      send: (payload, name) => void (open && this.#sending.put(outgoing, null, payload, name)),
      close: () => {
        if (!open) return;
        open = false;
        this.#sending.flush(); // what was said before goes out
        libc.close(fd);
      },
    };
  }

  #open({ address }: RawEndpoint, v6only: boolean): number {
    const v4 = address.length === 4;
    const fd = this.#libc.socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM);
    try {
      if (!v4) set(this.#libc, fd, SOL_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY", v6only ? 1 : 0);
      setTransparent(this.#libc, fd);
      return fd;
    } catch (error) {
      this.#libc.close(fd);
      throw error;
    }
  }

  /** What a listening socket tells of each datagram, and how much of them it holds. */
  #setUp(fd: number, { address }: RawEndpoint): void {
    const libc = this.#libc;
    set(libc, fd, SOL_IP, IP_ORIGDSTADDR, "IP_RECVORIGDSTADDR");
    tellMarks(libc, fd, address.length === 16);
    if (address.length === 16) {
      set(libc, fd, SOL_IPV6, IPV6_ORIGDSTADDR, "IPV6_RECVORIGDSTADDR");
    }
    widenBuffers(libc, fd);
    joinDatagrams(libc, fd);
  }

  #bind(fd: number, to: RawEndpoint): void {
    const length = encodeSockaddr(this.#address, to);
    const result = this.#library.functions.bind(fd, this.#addressPointer, length);
    if (result < 0) throw new SystemError("bind", int32At(this.#errno, 0));
  }

  #localOf(fd: number): RawEndpoint {
    const length = Uint32Array.of(SOCKADDR_BYTES);
    this.#library.functions.getsockname(fd, this.#addressPointer, length);
    return decodeSockaddr(this.#address) as RawEndpoint;
  }

  #listening(fd: number, local: RawEndpoint): RawTransparentSocket {
    let on: OnReceived | null = null;
    let watch: Watch | null = null;
    let open = true;
    let isPaused = false;
    // One batch for each turn of the event loop: promises of new sessions settle in between, so at most one batch waits
    // for decisions.
    const read = (): void => {
      if (on !== null) this.#receiving.read(fd, on);
    };
    return {
      fd,
      local,
      receive: (receiver) => {
        on = receiver;
        if (open && !isPaused) watch ??= this.#poller.watch(fd, read);
      },
      pause: () => {
        isPaused = true;
        watch?.close();
        watch = null;
      },
      close: () => {
        if (!open) return;
        open = false;
        watch?.close();
        this.#libc.close(fd);
      },
    };
  }
}
