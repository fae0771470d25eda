/**
 * The C library by `node:ffi`: typed, a handful of calls. A wrong pointer here is a crash and no exception, so only
 * this folder speaks FFI, every buffer lives as long as the object that lends it, and nothing blocks.
 */
import type * as Ffi from "node:ffi";
import { getSystemErrorName } from "node:util";
import { int32At } from "#lib/at.ts";
import { F_DUPFD_CLOEXEC } from "./numbers.ts";
import { openFfi, ffiFor } from "#platform/ffi.ts";

/** A call that the kernel refused; `code` is the errno name, as Node's own socket errors have it. */
export class SystemError extends Error {
  override readonly name = "SystemError";
  readonly code: string;
  constructor(call: string, errno: number) {
    const code = getSystemErrorName(-errno);
    super(`${call}: ${code}`);
    this.code = code;
  }
}

export interface Libc {
  /** A non-blocking, close-on-exec socket; the caller owns the descriptor. `protocol` 0 is the family's usual one. */
  socket(family: number, type: number, protocol?: number): number;
  /** `what` names the option in the error. */
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, what: string): void;
  /** Fills `value` and answers with how many bytes the kernel wrote. */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array): number;
  /** `name` is a sockaddr. */
  bind(fd: number, name: Uint8Array): void;
  /** Another descriptor of the same file, close-on-exec; the caller owns it. */
  duplicate(fd: number): number;
  close(fd: number): void;
}

const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;

const SIGNATURES = {
  socket: { arguments: ["i32", "i32", "i32"], return: "i32" },
  setsockopt: { arguments: ["i32", "i32", "i32", "pointer", "u32"], return: "i32" },
  getsockopt: { arguments: ["i32", "i32", "i32", "pointer", "pointer"], return: "i32" },
  bind: { arguments: ["i32", "pointer", "u32"], return: "i32" },
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** For what only Linux can do. Throws `ConfigError`, which names `keys`: what wants it. */
export function libcFor(keys: string, system: string = process.platform): Libc {
  return libcOf(ffiFor(keys, system));
}

/** Null where this runtime has no FFI. Throws where it has, but the library lacks a symbol. */
export function openLibc(): Libc | null {
  const ffi = openFfi();
  return ffi === null ? null : libcOf(ffi);
}

/** Throws where the library lacks a symbol. */
export function libcOf(ffi: typeof Ffi): Libc {
  const { lib, functions } = ffi.dlopen(null, SIGNATURES); // null: musl and glibc alike
  const errno = new Int32Array(ffi.toArrayBuffer(functions.__errno_location(), 4, false));
  const optionLength = new Uint32Array(1);
  const check = (call: string, result: number): number => {
    if (result < 0) throw new SystemError(call, int32At(errno, 0));
    return result;
  };
  const libc: Libc & { readonly keepsLoaded: unknown } = {
    keepsLoaded: lib,
    socket: (family, type, protocol = 0) =>
      check("socket", functions.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol)),
    setsockopt: (fd, level, option, value, what) =>
      void check(what, functions.setsockopt(fd, level, option, value, value.byteLength)),
    getsockopt(fd, level, option, value) {
      optionLength[0] = value.byteLength;
      check("getsockopt", functions.getsockopt(fd, level, option, value, optionLength));
      return optionLength[0];
    },
    bind: (fd, name) => void check("bind", functions.bind(fd, name, name.byteLength)),
    duplicate: (fd) => check("fcntl", functions.fcntl(fd, F_DUPFD_CLOEXEC, 0)),
    close: (fd) => void functions.close(fd),
  };
  return libc;
}
