/** Echo requests of our own (raw(7), icmp(7)): by a raw socket, or by the unprivileged kind that the kernel numbers. */
import { randomInt } from "node:crypto";
import type * as Ffi from "node:ffi";
import type { SocketOptions } from "#platform/socket-maker.ts";
import { SystemError, type Libc } from "./libc.ts";
import { AF_INET, AF_INET6, decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES } from "./sockaddr.ts";
import { bindToDevice, setMark } from "./sockopt.ts";
import type { Poller, Watch } from "./uv-poll.ts";
import { MSG_DONTWAIT, MSG_NOSIGNAL, SOCK_DGRAM } from "./numbers.ts";
import { byteAt } from "#lib/at.ts";

const SOCK_RAW = 3;
const PROTOCOL = { 4: 1, 6: 58 } as const;
const ECHO_REPLY = { 4: 0, 6: 129 } as const;
const HEADER_BYTES = 8;
const BUFFER_BYTES = 65_536;
/** Of one turn of the event loop. */
const TURN_MESSAGES = 64;
const SOL_RAW = 255;
const ICMP_FILTER = 1;
const ICMPV6_FILTER = 1;

const SIGNATURES = {
  sendto: { arguments: ["i32", "pointer", "i32", "i32", "pointer", "i32"], return: "i32" },
  recvfrom: { arguments: ["i32", "pointer", "i32", "i32", "pointer", "pointer"], return: "i32" },
} as const;

/** `message` is lent until it returns: an echo reply with its header, checked by the kernel. */
export type OnEchoReply = (source: Uint8Array, message: Uint8Array) => void;

export class EchoSocket {
  readonly #library;
  readonly #libc: Libc;
  readonly #family: 4 | 6;
  readonly #fd: number;
  readonly #raw: boolean;
  /** The identifier of all our requests; a raw socket also receives replies to other programs. */
  readonly #identifier = randomInt(1, 0x1_0000);
  readonly #buffer = Buffer.from(new ArrayBuffer(BUFFER_BYTES));
  readonly #address = new Uint8Array(new ArrayBuffer(SOCKADDR_BYTES));
  readonly #bufferPointer: bigint;
  readonly #addressPointer: bigint;
  readonly #length = new Uint32Array(new ArrayBuffer(4));
  readonly #lengthPointer: bigint;
  readonly #watch: Watch;
  readonly #on: OnEchoReply;
  /** False after close: the number of the descriptor may belong to another file by then. */
  #open = true;

  /** Throws `SystemError` where the process may do neither. */
  constructor(
    ffi: typeof Ffi,
    libc: Libc,
    poller: Poller,
    { family, options, on }: { family: 4 | 6; options: SocketOptions; on: OnEchoReply },
  ) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#libc = libc;
    this.#family = family;
    this.#on = on;
    this.#bufferPointer = ffi.getRawPointer(this.#buffer);
    this.#addressPointer = ffi.getRawPointer(this.#address);
    this.#lengthPointer = ffi.getRawPointer(this.#length);
    const { fd, raw } = openEither(libc, family);
    this.#fd = fd;
    this.#raw = raw;
    try {
      if (options.routingMark !== 0) setMark(libc, fd, options.routingMark);
      if (options.interfaceName !== "") bindToDevice(libc, fd, options.interfaceName);
      if (raw) filter(libc, fd, family);
      this.#watch = poller.watch(fd, () => this.#read());
    } catch (error) {
      libc.close(fd);
      throw error;
    }
  }

  /** `message`: an echo request; its identifier and checksum are overwritten. Never waits and may drop. */
  send(destination: Uint8Array, message: Uint8Array): void {
    if (!this.#open) return;
    message[4] = this.#identifier >> 8;
    message[5] = this.#identifier & 0xff;
    message[2] = message[3] = 0;
    if (this.#family === 4) writeChecksum(message); // the kernel does it for ICMPv6, whose sum has the source in it
    const length = encodeSockaddr(this.#address, { address: destination, port: 0 });
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const { sendto } = this.#library.functions;
    sendto(this.#fd, message, message.length, flags, this.#addressPointer, length);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#watch.close();
    this.#libc.close(this.#fd);
  }

  #read(): void {
    const { recvfrom } = this.#library.functions;
    for (let count = 0; count < TURN_MESSAGES && this.#open; count++) {
      this.#length[0] = SOCKADDR_BYTES;
      const [buffer, address] = [this.#bufferPointer, this.#addressPointer];
      const length = recvfrom(this.#fd, buffer, BUFFER_BYTES, MSG_DONTWAIT, address, this.#lengthPointer);
      if (length < 0) return; // nothing more, or a pending error, which is off the socket now
      this.#give(this.#buffer.subarray(0, length));
    }
  }

  #give(packet: Buffer): void {
    const source = decodeSockaddr(this.#address);
    // An IPv4 raw socket shows the IP header.
    const headerBytes = this.#raw && this.#family === 4 ? ((packet[0] ?? 0) & 0x0f) * 4 : 0;
    const message = packet.subarray(headerBytes);
    if (source === null || message.length < HEADER_BYTES || message[0] !== ECHO_REPLY[this.#family]) return;
    if (this.#raw && message.readUInt16BE(4) !== this.#identifier) return;
    this.#on(source.address, message);
  }
}

function openEither(libc: Libc, family: 4 | 6): { readonly fd: number; readonly raw: boolean } {
  const domain = family === 4 ? AF_INET : AF_INET6;
  try {
    return { fd: libc.socket(domain, SOCK_RAW, PROTOCOL[family]), raw: true };
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    return { fd: libc.socket(domain, SOCK_DGRAM, PROTOCOL[family]), raw: false };
  }
}

/** Lets echo replies in, and nothing else: a bit that is set keeps a type out. */
function filter(libc: Libc, fd: number, family: 4 | 6): void {
  const bits = new Uint32Array(family === 4 ? 1 : 8).fill(0xffff_ffff);
  const type = ECHO_REPLY[family];
  bits[type >> 5] = ~(1 << (type & 31)) >>> 0;
  const [level, option] = family === 4 ? [SOL_RAW, ICMP_FILTER] : [PROTOCOL[6], ICMPV6_FILTER];
  libc.setsockopt(fd, level, option, new Uint8Array(bits.buffer), "ICMP filter");
}

function writeChecksum(message: Uint8Array): void {
  let sum = 0;
  for (let at = 0; at < message.length; at += 2) sum += (byteAt(message, at) << 8) | (message[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  message[2] = (0xffff - sum) >> 8;
  message[3] = (0xffff - sum) & 0xff;
}
