/**
 * Requests to the kernel over netlink (netlink(7)). The kernel works a request off within `send`, so the answer lies
 * ready when it returns: a call blocks for as long as the kernel works, and no longer.
 */
import type * as Ffi from "node:ffi";
import { ProtocolError } from "#core/errors.ts";
import { SystemError, type Libc } from "#platform/linux/libc.ts";
import {
  decodeMessages,
  encodeMessage,
  LITTLE_ENDIAN,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  readAttributes,
  textOf,
  type NetlinkMessage,
} from "./message.ts";
import { int32At } from "#lib/at.ts";

export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;
const NLM_F_ACK_TLVS = 0x200;
const NLM_F_CAPPED = 0x100;
const NLMSGERR_ATTR_MSG = 1;
const EBADF = 9;
const EAGAIN = 11;
const EBADMSG = 74;
const MOST_ERRNO = 4095;

/** More than the kernel puts into one datagram of a dump. */
const BUFFER_BYTES = 64 * 1024;
/** A dump with more is given up with an error: a second or so of a full Internet table. */
const MOST_DUMPED = 1_200_000;

// sockaddr_nl: FAMILY(2) PAD(2) PID(4, 0: the kernel gives one) GROUPS(4)
const SOCKADDR_NL_BYTES = 12;

const SIGNATURES = {
  bind: { arguments: ["i32", "pointer", "i32"], return: "i32" },
  send: { arguments: ["i32", "pointer", "i32", "i32"], return: "i32" },
  recv: { arguments: ["i32", "pointer", "i32", "i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export class NetlinkSocket implements Disposable {
  readonly fd: number;
  readonly #libc: Libc;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #buffer = new Uint8Array(new ArrayBuffer(BUFFER_BYTES));
  #sequence = 0;
  #open = true;

  /** Throws `SystemError`. */
  constructor(ffi: typeof Ffi, libc: Libc, protocol: number) {
    this.#libc = libc;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.fd = libc.socket(AF_NETLINK, SOCK_RAW, protocol);
    this.#bind();
    for (const option of [NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK]) this.#try(option);
  }

  /** Messages of this multicast group come in from now on. */
  join(group: number): void {
    const value = new Uint8Array(Int32Array.of(group).buffer);
    this.#libc.setsockopt(this.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, value, `netlink group ${group}`);
  }

  /** Throws `SystemError` with the kernel's reason; `what` names the request in it. */
  request(what: string, type: number, flags: number, payload: Uint8Array): void {
    const all = flags | NLM_F_ACK | NLM_F_REQUEST;
    this.requestAs(what, (sequence) => encodeMessage({ type, flags: all, sequence, payload }));
  }

  /** The same for what is more than one message: `encode` gives all of them this number, and one asks for an answer. */
  requestAs(what: string, encode: (sequence: number) => Uint8Array): void {
    const sequence = this.#send(what, encode);
    for (;;)
      for (const message of this.#receive(what))
        if (message.sequence === sequence && message.type === NLMSG_ERROR) return check(what, message);
  }

  /** Calls `visit` for every answer; the payload is lent for the length of the call. */
  dump(what: string, type: number, payload: Uint8Array, visit: (message: NetlinkMessage) => void): void {
    const flags = NLM_F_DUMP | NLM_F_REQUEST;
    const sequence = this.#send(what, (number) => encodeMessage({ type, flags, sequence: number, payload }));
    for (let count = 0; ;) {
      for (const message of this.#receive(what)) {
        if (message.sequence !== sequence) continue;
        if (message.type === NLMSG_ERROR || message.type === NLMSG_DONE) return check(what, message);
        if (++count > MOST_DUMPED) throw new ProtocolError(`${what}: more than ${MOST_DUMPED} entries`);
        visit(message);
      }
    }
  }

  /** What lies ready of the groups, one datagram; null: nothing more. Throws `SystemError` ENOBUFS where some were lost. */
  poll(): readonly NetlinkMessage[] | null {
    if (!this.#open) return null;
    const length = this.#recv();
    if (length >= 0) return decodeMessages(this.#buffer.subarray(0, length));
    const errno = int32At(this.#errno, 0);
    if (errno === EAGAIN) return null;
    throw new SystemError("netlink", errno);
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#libc.close(this.fd);
  }

  /** A socket without an address receives no multicast messages. */
  #bind(): void {
    const address = new Uint8Array(SOCKADDR_NL_BYTES);
    new DataView(address.buffer).setUint16(0, AF_NETLINK, LITTLE_ENDIAN);
    if (this.#library.functions.bind(this.fd, address, address.length) === 0) return;
    const errno = int32At(this.#errno, 0);
    this[Symbol.dispose]();
    throw new SystemError("netlink", errno);
  }

  #send(what: string, encode: (sequence: number) => Uint8Array): number {
    this.#check(what);
    this.#drain();
    const sequence = (this.#sequence = (this.#sequence + 1) >>> 0);
    const message = encode(sequence);
    const sent = this.#library.functions.send(this.fd, message, message.length, 0);
    if (sent < 0) throw new SystemError(what, int32At(this.#errno, 0));
    return sequence;
  }

  /** Discards the remainder of a reply whose reading failed half way. */
  #drain(): void {
    for (let count = 0; count < 1024 && this.#recv() >= 0; count++);
  }

  #recv(): number {
    return this.#library.functions.recv(this.fd, this.#buffer, BUFFER_BYTES, 0);
  }

  /** Throws EBADF after close, before the number can reach another file. */
  #check(what: string): void {
    if (!this.#open) throw new SystemError(what, EBADF);
  }

  #receive(what: string): readonly NetlinkMessage[] {
    this.#check(what); // the callback for an entry of a dump may have closed the socket
    const length = this.#recv();
    if (length < 0) throw new SystemError(what, int32At(this.#errno, 0));
    if (length === 0) throw new SystemError(what, EBADMSG);
    return decodeMessages(this.#buffer.subarray(0, length));
  }

  /** Kernels before 4.12 and 4.20 do without: less to read in an error, more to read in a dump. */
  #try(option: number): void {
    try {
      const on = new Uint8Array(Int32Array.of(1).buffer);
      this.#libc.setsockopt(this.fd, SOL_NETLINK, option, on, "netlink");
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
    }
  }
}

// nlmsgerr: ERROR(4, negative errno) then the request (its header alone where CAPPED), then attributes where ACK_TLVS
/** Throws what an acknowledgement, or the end of a dump, says of a failure. */
export function check(what: string, { flags, payload }: NetlinkMessage): void {
  if (payload.length < 4) throw new ProtocolError(`netlink: an answer of ${payload.length} bytes`);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const errno = -view.getInt32(0, LITTLE_ENDIAN);
  if (errno === 0) return;
  if (errno < 0 || errno > MOST_ERRNO) throw new ProtocolError(`netlink: ${errno} is no error number`);
  const reason = reasonIn(flags, payload, view);
  throw new SystemError(reason === "" ? what : `${what} (${reason})`, errno);
}

function reasonIn(flags: number, payload: Uint8Array, view: DataView): string {
  if ((flags & NLM_F_ACK_TLVS) === 0 || payload.length < 20) return "";
  const echoed = (flags & NLM_F_CAPPED) === 0 ? view.getUint32(4, LITTLE_ENDIAN) : 16;
  try {
    return textOf(readAttributes(payload.subarray(4 + ((echoed + 3) & ~3))).get(NLMSGERR_ATTR_MSG));
  } catch {
    return ""; // the number is the error; a text that cannot be read is none
  }
}
