/**
 * A TUN device (Documentation/networking/tuntap): IP packets through a descriptor, in Node's event loop. Every packet
 * has a virtio_net_hdr in front, so that segmentation and checksums can be left to the kernel.
 */
import type * as Ffi from "node:ffi";
import { SystemError } from "./libc.ts";
import { WORDS } from "./machine-words.ts";
import type { Poller, Watch } from "./uv-poll.ts";
import { F_DUPFD_CLOEXEC, O_CLOEXEC, O_NONBLOCK } from "./numbers.ts";
import { itemAt, int32At } from "#lib/at.ts";

// struct virtio_net_hdr: FLAGS(1) GSO_TYPE(1) HDR_LEN(2) GSO_SIZE(2) CSUM_START(2) CSUM_OFFSET(2), host order
export const VNET_BYTES = 10;
/** flags: the checksum field holds the sum of the pseudo-header only. */
export const NEEDS_CHECKSUM = 1;
/** gso_type: a TCP segment, to be cut into segments of gso_size. */
export const GSO_TCP = { 4: 1, 6: 4 } as const;
/** gso_type: UDP, to be cut into datagrams of gso_size (Linux 6.2). */
export const GSO_UDP = 5;
/** flags: the kernel has verified the checksum. */
export const CHECKSUM_VALID = 2;
/** Where the IP header begins in every buffer, whether the device has the header before it or not. */
export const PACKET_AT = VNET_BYTES;
/** No IP packet is longer. */
export const MOST_PACKET_BYTES = 65_535;
const BUFFER_BYTES = VNET_BYTES + MOST_PACKET_BYTES;

export const IFF_TUN = 0x0001;
export const IFF_NO_PI = 0x1000;
const IFF_VNET_HDR = 0x4000;
export const TUNSETIFF = 0x400454ca;
const TUNGETIFF = 0x800454d2;
const TUNSETOFFLOAD = 0x400454d0;
const OFFLOAD_CHECKSUM = 0x01;
const OFFLOAD_TCP4 = 0x02;
const OFFLOAD_TCP6 = 0x04;
const OFFLOAD_UDP = 0x20 | 0x40; // both families, which come together
export const O_RDWR = 2;
const F_GETFL = 3;
const F_SETFL = 4;
// struct ifreq: NAME(16) FLAGS(2) …, 40 bytes on 64-bit systems
export const IFREQ_BYTES = 40;
export const NAME_BYTES = 16;
/** "File descriptor in bad state": the device was deleted. */
const EBADFD = 77;

/**
 * Packets read in one turn of the event loop, so that sockets and timers have theirs; further packets wait in the
 * device.
 */
const TURN_PACKETS = 128;
const TURN_BYTES = 1 << 20;

const SIGNATURES = {
  open: { arguments: ["pointer", "i32"], return: "i32" },
  ioctl: { arguments: ["i32", "u32", "pointer"], return: "i32" },
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
  read: { arguments: WORDS[3], return: "i32" },
  write: { arguments: WORDS[3], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  if_nametoindex: { arguments: ["pointer"], return: "u32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export interface TunAsk {
  /** At most 15 bytes; a `%d` becomes the first free number. Ignored with a descriptor. */
  readonly name: string;
  /** TCP segments and checksums are left to the kernel (TSO). */
  readonly offload: boolean;
  /** A descriptor that another program has opened and set up; the device takes ownership. 0: none. */
  readonly fileDescriptor: number;
  /** What another process of weir knows of the device that it hands over by the descriptor. Absent: nothing is known of it. */
  readonly known?: Pick<TunDevice, "cutsDatagrams">;
}

/** Memory that the kernel may be lent, with its address. A packet begins at `PACKET_AT`. */
export interface PacketBuffer {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly pointer: bigint;
  /** The address of the packet itself. */
  readonly packetPointer: bigint;
}

/** Makes devices. Throws `SystemError` naming the call that failed. */
export class TunDevices {
  readonly #ffi: typeof Ffi;
  readonly #poller: Poller;

  constructor(ffi: typeof Ffi, poller: Poller) {
    this.#ffi = ffi;
    this.#poller = poller;
  }

  open(ask: TunAsk): TunDevice {
    return new TunDevice(this.#ffi, this.#poller, ask);
  }
}

/** What the stack needs of a device. */
export type PacketDevice = Pick<TunDevice, "hasHeader" | "cutsDatagrams" | "incoming" | "outgoing" | "write">;

export class TunDevice implements Disposable {
  readonly name: string;
  readonly index: number;
  /** Is there a virtio_net_hdr in front of each packet? */
  readonly hasHeader: boolean;
  /** Does the kernel cut what is written as a run of datagrams (`GSO_UDP`)? */
  readonly cutsDatagrams: boolean;
  /** Holds the packet that `receive` reports, until the callback returns. It may be changed and written back. */
  readonly incoming: PacketBuffer;
  /** For packets that are made here. The header before the packet is the writer's, too. */
  readonly outgoing: PacketBuffer;
  readonly #ffi: typeof Ffi;
  readonly #poller: Poller;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #fd: number;
  #watch: Watch | null = null;
  #open = true;

  constructor(ffi: typeof Ffi, poller: Poller, ask: TunAsk) {
    this.#ffi = ffi;
    this.#poller = poller;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.incoming = this.#buffer();
    this.outgoing = this.#buffer();
    const given = ask.fileDescriptor;
    this.#fd = given > 0 ? this.#duplicate(given) : this.#create();
    try {
      const { name, flags } = given > 0 ? this.#inherit() : this.#attach(ask.name);
      this.name = name;
      this.hasHeader = (flags & IFF_VNET_HDR) !== 0;
      this.cutsDatagrams = ask.known?.cutsDatagrams ?? (this.hasHeader && this.#cutsDatagrams());
      if (this.hasHeader && ask.known === undefined) this.#setOffload(ask.offload);
      this.index = this.#library.functions.if_nametoindex(zeroEnded(name));
    } catch (error) {
      this.#library.functions.close(this.#fd);
      throw error;
    }
    if (given > 0) this.#library.functions.close(given); // closed only once it is known to be a TUN: the number may belong to any file
  }

  /**
   * Begins to read: `on` is called with the length of the packet in `incoming`. `onGone` is called once if another
   * program deletes the device. Neither may throw.
   */
  receive(on: (length: number) => void, onGone: () => void): void {
    if (!this.#open || this.#watch !== null) return;
    this.#watch = this.#poller.watch(this.#fd, () => {
      if (this.#readTurn(on)) return;
      this.close();
      onGone();
    });
  }

  /** Reads no more until the next `receive`; packets wait in the device. */
  pause(): void {
    this.#watch?.close();
    this.#watch = null;
  }

  get fd(): number {
    return this.#fd;
  }

  /** Never waits; what the kernel does not take (malformed, its queue is full, the device is down) is lost. */
  write(buffer: PacketBuffer, length: number): void {
    if (!this.#open) return;
    const { write } = this.#library.functions;
    if (this.hasHeader) write(BigInt(this.#fd), buffer.pointer, BigInt(VNET_BYTES + length));
    else write(BigInt(this.#fd), buffer.packetPointer, BigInt(length));
  }

  /** The device disappears with its addresses and routes, unless another program holds its descriptor, too. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.pause();
    this.#library.functions.close(this.#fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** False: the device is gone. */
  #readTurn(on: (length: number) => void): boolean {
    const { read } = this.#library.functions;
    const head = this.hasHeader ? VNET_BYTES : 0;
    const pointer = this.hasHeader ? this.incoming.pointer : this.incoming.packetPointer;
    let bytes = 0;
    for (let count = 0; count < TURN_PACKETS && bytes < TURN_BYTES && this.#watch !== null; count++) {
      const length = read(BigInt(this.#fd), pointer, BigInt(head + MOST_PACKET_BYTES));
      if (length < 0) return this.#errno[0] !== EBADFD;
      bytes += length;
      if (length > head) on(length - head);
    }
    return true;
  }

  #buffer(): PacketBuffer {
    const memory = new ArrayBuffer(BUFFER_BYTES); // never on the moving heap
    const bytes = new Uint8Array(memory);
    const pointer = this.#ffi.getRawPointer(bytes);
    return { bytes, view: new DataView(memory), pointer, packetPointer: pointer + BigInt(VNET_BYTES) };
  }

  #create(): number {
    const flags = O_RDWR | O_NONBLOCK | O_CLOEXEC;
    return this.#check("open /dev/net/tun", this.#library.functions.open(zeroEnded("/dev/net/tun"), flags));
  }

  #duplicate(fd: number): number {
    return this.#check(`file-descriptor ${fd}`, this.#library.functions.fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }

  #attach(name: string): Attached {
    const request = Buffer.alloc(IFREQ_BYTES);
    request.write(name, 0, NAME_BYTES - 1, "latin1");
    const flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    new Uint16Array(request.buffer, request.byteOffset + NAME_BYTES, 1)[0] = flags;
    this.#check(`TUNSETIFF ${name}`, this.#library.functions.ioctl(this.#fd, TUNSETIFF, request));
    return { name: nameIn(request), flags };
  }

  #inherit(): Attached {
    const { ioctl, fcntl } = this.#library.functions;
    const request = Buffer.alloc(IFREQ_BYTES);
    this.#check("TUNGETIFF", ioctl(this.#fd, TUNGETIFF, request));
    const status = this.#check("fcntl", fcntl(this.#fd, F_GETFL, 0));
    this.#check("fcntl", fcntl(this.#fd, F_SETFL, status | O_NONBLOCK));
    const flags = itemAt(new Uint16Array(request.buffer, request.byteOffset + NAME_BYTES, 1), 0);
    return { name: nameIn(request), flags };
  }

  /** A kernel that could give runs of datagrams takes them, too; one that does not know them refuses the flag. */
  #cutsDatagrams(): boolean {
    const features = BigInt(OFFLOAD_CHECKSUM | OFFLOAD_UDP);
    return this.#library.functions.ioctl(this.#fd, TUNSETOFFLOAD, features) >= 0; // until the next call sets what is read
  }

  #setOffload(on: boolean): void {
    const features = on ? OFFLOAD_CHECKSUM | OFFLOAD_TCP4 | OFFLOAD_TCP6 : 0;
    // The argument is a number, which goes where pointers go.
    this.#check("TUNSETOFFLOAD", this.#library.functions.ioctl(this.#fd, TUNSETOFFLOAD, BigInt(features)));
  }

  #check(call: string, result: number): number {
    if (result < 0) throw new SystemError(call, int32At(this.#errno, 0));
    return result;
  }
}

interface Attached {
  readonly name: string;
  readonly flags: number;
}

function nameIn(request: Buffer): string {
  const end = request.indexOf(0);
  return request.toString("latin1", 0, Math.min(end < 0 ? NAME_BYTES : end, NAME_BYTES));
}

export function zeroEnded(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

/** Another device has the name, or it is not a TUN. */
export function isNameTaken(error: unknown): boolean {
  return error instanceof SystemError && (error.code === "EBUSY" || error.code === "EINVAL");
}
