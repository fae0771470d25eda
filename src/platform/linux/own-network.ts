/**
 * A network of this process alone: a network namespace (network_namespaces(7)) with devices, addresses and routes that the
 * machine does not see. A socket belongs for good to the network in which it was made, and is used from anywhere.
 */
import type * as Ffi from "node:ffi";
import { int32At } from "#lib/at.ts";
import { SystemError } from "./libc.ts";
import { O_CLOEXEC } from "./numbers.ts";

const CLONE_NEWNET = 0x4000_0000;
const O_RDONLY = 0;
const EXIT_FATAL = 70;
/** Of the thread that looks. */
const PRESENT = Buffer.from("/proc/thread-self/ns/net\0");

const SIGNATURES = {
  open: { arguments: ["pointer", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  setns: { arguments: ["i32", "i32"], return: "i32" },
  unshare: { arguments: ["i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** Once in a thread. */
let loaded: ReturnType<typeof Ffi.dlopen<typeof SIGNATURES>> | undefined;

export class OwnNetwork implements Disposable {
  readonly #library;
  readonly #errno: Int32Array;
  readonly #outside: number;
  readonly #inside: number;
  #open = true;

  /** Throws `SystemError`: EPERM without CAP_SYS_ADMIN, ENOSPC where the machine has too many. */
  constructor(ffi: typeof Ffi) {
    this.#library = loaded ??= ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.#outside = this.#present();
    try {
      this.#check("unshare", this.#library.functions.unshare(CLONE_NEWNET));
    } catch (error) {
      this.#library.functions.close(this.#outside);
      throw error;
    }
    try {
      this.#inside = this.#present();
    } catch (error) {
      this.#goOut();
      this.#library.functions.close(this.#outside);
      throw error;
    }
    this.#goOut();
  }

  /** What `work` makes (sockets, devices) belongs to this network. It must not wait for anything. */
  within<Made>(work: () => Made): Made {
    if (!this.#open) throw new Error("the network is closed");
    this.#check("setns", this.#library.functions.setns(this.#inside, CLONE_NEWNET));
    try {
      return work();
    } finally {
      this.#goOut();
    }
  }

  /** It goes when nothing is left in it. */
  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    this.#library.functions.close(this.#inside);
    this.#library.functions.close(this.#outside);
  }

  #present(): number {
    return this.#check("open", this.#library.functions.open(PRESENT, O_RDONLY | O_CLOEXEC));
  }

  /** A thread that stayed inside would send everything the wrong way: nothing is worth going on for then. */
  #goOut(): void {
    if (this.#library.functions.setns(this.#outside, CLONE_NEWNET) === 0) return;
    process.stderr.write("fatal: the way back from a network of our own is refused\n");
    process.exit(EXIT_FATAL);
  }

  #check(call: string, result: number): number {
    if (result < 0) throw new SystemError(call, int32At(this.#errno, 0));
    return result;
  }
}
