/** Datagrams to a service manager's socket (sd_notify(3), unix(7)); `node:dgram` knows no unix sockets. */
import { SystemError, type Libc } from "./libc.ts";
import { AF_UNIX, MSG_DONTWAIT, MSG_NOSIGNAL, SOCK_DGRAM } from "./numbers.ts";
import { int32At } from "#lib/at.ts";
import { ffiFor } from "#platform/ffi.ts";

/** sockaddr_un: FAMILY(2) PATH(108) */
const FAMILY_BYTES = 2;
const PATH_BYTES = 108;

const SIGNATURES = {
  sendto: { arguments: ["i32", "pointer", "i32", "i32", "pointer", "i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export interface NotifySocket {
  /** Never waits. Throws `SystemError`. */
  send(text: string): void;
}

/** `path` is absolute, or begins with @ for an abstract address. Throws `RangeError` for what is neither. */
export function openNotifySocket(libc: Libc, path: string): NotifySocket {
  const address = encodeUnixAddress(path);
  const ffi = ffiFor("NOTIFY_SOCKET");
  const { lib, functions } = ffi.dlopen(null, SIGNATURES);
  const errno = new Int32Array(ffi.toArrayBuffer(functions.__errno_location(), 4, false));
  const socket: NotifySocket & { readonly keepsLoaded: unknown } = {
    keepsLoaded: lib,
    send(text) {
      const fd = libc.socket(AF_UNIX, SOCK_DGRAM);
      try {
        const payload = Buffer.from(text);
        const flags = MSG_NOSIGNAL | MSG_DONTWAIT;
        const sent = functions.sendto(
          fd,
          payload,
          payload.length,
          flags,
          ffi.getRawPointer(address),
          address.length,
        );
        if (sent < 0) throw new SystemError("notify the service manager", int32At(errno, 0));
      } finally {
        libc.close(fd);
      }
    },
  };
  return socket;
}

export function encodeUnixAddress(path: string): Uint8Array {
  const name = Buffer.from(path);
  const abstract = path.startsWith("@");
  if ((!abstract && !path.startsWith("/")) || name.length >= PATH_BYTES)
    throw new RangeError(`NOTIFY_SOCKET: expected an absolute path or @name, got ${JSON.stringify(path)}`);
  if (abstract) name[0] = 0; // an abstract name ends with the address, a path with a zero
  const address = new Uint8Array(new ArrayBuffer(FAMILY_BYTES + name.length + (abstract ? 0 : 1)));
  address.set(new Uint8Array(Uint16Array.of(AF_UNIX).buffer));
  address.set(name, FAMILY_BYTES);
  return address;
}
