/**
 * A TUN device without a reader: packets routed to it are lost. It belongs to one program at a time, and may outlive it or be
 * passed on to the program that takes the process's place (Documentation/networking/tuntap).
 */
import type * as Ffi from "node:ffi";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { int32At } from "#lib/at.ts";
import { SystemError } from "./libc.ts";
import { O_CLOEXEC, O_NONBLOCK } from "./numbers.ts";
import { IFF_NO_PI, IFF_TUN, IFREQ_BYTES, NAME_BYTES, O_RDWR, TUNSETIFF, zeroEnded } from "./tun.ts";

const TUNSETPERSIST = 0x400454cb;
const F_SETFD = 2;
const FD_CLOEXEC = 1;

const SIGNATURES = {
  open: { arguments: ["pointer", "i32"], return: "i32" },
  ioctl: { arguments: ["i32", "u32", "pointer"], return: "i32" },
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  if_nametoindex: { arguments: ["pointer"], return: "u32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export class IdleTun implements Disposable {
  readonly name: string;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #fd: number;
  #open = true;

  /** Makes the device or takes over one without a holder. Throws `SystemError`: EBUSY where another program holds it. */
  constructor(ffi: typeof Ffi, name: string) {
    this.name = name;
    this.#library = ffi.dlopen(null, SIGNATURES);
    const { functions } = this.#library;
    this.#errno = new Int32Array(ffi.toArrayBuffer(functions.__errno_location(), 4, false));
    const inherited = inheritedTun(name);
    this.#fd =
      inherited ?? this.#check("open /dev/net/tun", functions.open(zeroEnded("/dev/net/tun"), FLAGS));
    try {
      if (inherited === null) this.#attach();
      else this.#check("fcntl", functions.fcntl(inherited, F_SETFD, FD_CLOEXEC));
    } catch (error) {
      functions.close(this.#fd);
      throw error;
    }
  }

  get fd(): number {
    return this.#fd;
  }

  /** 0: it was deleted by another program. */
  get index(): number {
    return this.#library.functions.if_nametoindex(zeroEnded(this.name));
  }

  /** Does it stay when its holder ends? */
  persist(on: boolean): void {
    this.#check("TUNSETPERSIST", this.#library.functions.ioctl(this.#fd, TUNSETPERSIST, on ? 1n : 0n));
  }

  /** The program that replaces this one in its process holds it from then on, and finds it by its name. */
  passOn(): void {
    this.#check("fcntl", this.#library.functions.fcntl(this.#fd, F_SETFD, 0));
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#library.functions.close(this.#fd);
  }

  #attach(): void {
    const request = Buffer.alloc(IFREQ_BYTES);
    request.write(this.name, 0, NAME_BYTES - 1, "latin1");
    new Uint16Array(request.buffer, request.byteOffset + NAME_BYTES, 1)[0] = IFF_TUN | IFF_NO_PI;
    this.#check(`TUNSETIFF ${this.name}`, this.#library.functions.ioctl(this.#fd, TUNSETIFF, request));
  }

  #check(call: string, result: number): number {
    if (result < 0) throw new SystemError(call, int32At(this.#errno, 0));
    return result;
  }
}

const FLAGS = O_RDWR | O_NONBLOCK | O_CLOEXEC;

/** Descriptors of a TUN tell whose they are. */
function inheritedTun(name: string): number | null {
  const link = `iff:\t${name}\n`;
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      if (!readlinkSync(`/proc/self/fd/${fd}`).endsWith("/tun")) continue;
      if (readFileSync(`/proc/self/fdinfo/${fd}`, "utf8").includes(link)) return Number(fd);
    } catch {
      // That of the directory itself is closed by now.
    }
  }
  return null;
}
