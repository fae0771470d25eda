/** Local ports that no other program uses, for sockets that are about to be bound to a device. */
import { readFileSync } from "node:fs";
import type { Libc } from "./libc.ts";
import { SOL_IP } from "./control-message.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "./sockaddr.ts";

const RANGE_FILE = "/proc/sys/net/ipv4/ip_local_port_range";
/** ip(7), since Linux 6.3, of both families: the first port, and in the upper half the last one. 0: the system's. */
const IP_LOCAL_PORT_RANGE = 51;
/** Among how many the kernel looks for a free one: it takes ports one by one, and all of a full range would cost milliseconds. */
const WINDOW = 64;

export type PortRange = readonly [first: number, last: number];

/**
 * The upper half of the system's ephemeral ports; the lower half is left to other programs. Null when the range cannot
 * be read.
 */
function upperHalf(): PortRange | null {
  try {
    const [first = Number.NaN, last = first] = readFileSync(RANGE_FILE, "latin1").split(/\s+/).map(Number);
    return [first + ((last - first) >> 1), last];
  } catch {
    return null; // no /proc
  }
}

export class OwnPorts {
  readonly #libc: Libc;
  readonly #any = {
    4: anyAddress(4),
    6: anyAddress(16),
  };
  readonly #window = new Uint32Array(1);
  readonly #windowBytes = new Uint8Array(this.#window.buffer);
  /** Null: this system cannot. */
  #range: PortRange | null;

  constructor(libc: Libc, range: PortRange | null = upperHalf()) {
    this.#libc = libc;
    this.#range = range !== null && range[1] - range[0] + 1 >= WINDOW ? range : null;
  }

  /**
   * Binds a fresh socket to a port that no other socket of this machine has, nor gets as long as it is held. To be called
   * before SO_BINDTODEVICE: the kernel gives a socket of a device ports of others. False: there is none, and the socket is
   * as it was, to get its port at `connect`.
   */
  take(fd: number, family: 4 | 6): boolean {
    if (this.#range === null) return false;
    const [first, last] = this.#range;
    const from = first + Math.floor(Math.random() * (last - first + 2 - WINDOW));
    if (!this.#look(fd, (from + WINDOW - 1) * 0x1_0000 + from)) {
      this.#range = null;
      return false;
    }
    try {
      this.#libc.bind(fd, this.#any[family]);
      return true;
    } catch {
      this.#look(fd, 0); // EADDRINUSE
      return false;
    }
  }

  #look(fd: number, window: number): boolean {
    this.#window[0] = window;
    try {
      this.#libc.setsockopt(fd, SOL_IP, IP_LOCAL_PORT_RANGE, this.#windowBytes, "IP_LOCAL_PORT_RANGE");
      return true;
    } catch {
      return false; // ENOPROTOOPT
    }
  }
}

/** Any address, any port, as a sockaddr. */
function anyAddress(bytes: 4 | 16): Uint8Array {
  const name = new Uint8Array(SOCKADDR_BYTES);
  return name.subarray(0, encodeSockaddr(name, { address: new Uint8Array(bytes), port: 0 }));
}
