/** Programs of classic BPF that the kernel runs over what comes for a socket, before it is queued (socket(7), linux/filter.h). */
import type * as Ffi from "node:ffi";
import type { SocketProgram } from "#core/sockets.ts";
import type { Libc } from "./libc.ts";
import { setLong } from "./message-layout.ts";
import { SOL_SOCKET } from "./numbers.ts";

const SO_REUSEPORT = 15;
const SO_ATTACH_FILTER = 26;
const SO_DETACH_FILTER = 27;
const SO_ATTACH_REUSEPORT_CBPF = 51;
// sock_filter: CODE(2) JT(1) JF(1) K(4); sock_fprog: LENGTH(2) padding to 8, then the address of the first
const INSTRUCTION_BYTES = 8;
const PROGRAM_BYTES = 16;
const ADDRESS_WORD = 2;

/** In place of one that was there. Needs no privilege. Throws `SystemError` for a program that the kernel does not take. */
export function attachProgram(ffi: typeof Ffi, libc: Libc, fd: number, program: SocketProgram): void {
  setProgram(ffi, libc, fd, [SO_ATTACH_FILTER, "SO_ATTACH_FILTER"], program);
}

/** Other sockets of this user may be bound to the same address from now on. Throws `SystemError`. */
export function admitOthers(libc: Libc, fd: number): void {
  libc.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, new Uint8Array(Int32Array.of(1).buffer), "SO_REUSEPORT");
}

/** Which of the sockets at one address gets a datagram, in the order in which they were bound. Throws `SystemError`. */
export function attachChoice(ffi: typeof Ffi, libc: Libc, fd: number, program: SocketProgram): void {
  setProgram(ffi, libc, fd, [SO_ATTACH_REUSEPORT_CBPF, "SO_ATTACH_REUSEPORT_CBPF"], program);
}

function setProgram(
  ffi: typeof Ffi,
  libc: Libc,
  fd: number,
  [option, name]: readonly [number, string],
  program: SocketProgram,
): void {
  const code = new ArrayBuffer(program.length * INSTRUCTION_BYTES);
  const [halves, bytes, words] = [new Uint16Array(code), new Uint8Array(code), new Uint32Array(code)];
  for (const [at, [operation, ifTrue, ifFalse, value]] of program.entries()) {
    halves[at * 4] = operation;
    bytes[at * 8 + 2] = ifTrue;
    bytes[at * 8 + 3] = ifFalse;
    words[at * 2 + 1] = value;
  }
  const head = new ArrayBuffer(PROGRAM_BYTES);
  new Uint16Array(head)[0] = program.length;
  setLong(new Uint32Array(head), ADDRESS_WORD, Number(ffi.getRawPointer(bytes)));
  libc.setsockopt(fd, SOL_SOCKET, option, new Uint8Array(head), name);
}

/** Nothing where there is none. */
export function detachProgram(libc: Libc, fd: number): void {
  try {
    libc.setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, new Uint8Array(4), "SO_DETACH_FILTER");
  } catch {
    // ENOENT
  }
}
