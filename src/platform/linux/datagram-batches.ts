/** What the UDP sockets of one owner share on one thread: memory for datagrams in batches. 64-bit layouts. */
import type * as Ffi from "node:ffi";
import type { SocketProgram } from "#core/sockets.ts";
import { type Libc, libcOf } from "./libc.ts";
import { ReceiveBatch } from "./receive-batch.ts";
import { SendBatch } from "./send-batch.ts";
import { admitOthers, attachChoice, attachProgram, detachProgram } from "./socket-program.ts";
import { cutsMessages, joinDatagrams, tellMarks, widenBuffers } from "./udp-options.ts";
import { Poller } from "./uv-poll.ts";
import { F_DUPFD_CLOEXEC } from "./numbers.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
} as const;

/** Null where this runtime or this system cannot. */
export function openDatagramBatches(runs: boolean): DatagramBatches | null {
  const ffi = openLinuxFfi();
  return ffi === null ? null : new DatagramBatches(ffi, libcOf(ffi), new Poller(ffi), runs);
}

export class DatagramBatches {
  readonly receive: ReceiveBatch;
  readonly send: SendBatch;
  readonly poller: Poller;
  readonly #ffi: typeof Ffi;
  readonly #libc: Libc;
  readonly #joins: boolean;
  readonly #library;

  constructor(ffi: typeof Ffi, libc: Libc, poller: Poller, runs: boolean) {
    this.#ffi = ffi;
    this.receive = new ReceiveBatch(ffi);
    this.send = new SendBatch(ffi, runs && cutsMessages(libc));
    this.#joins = runs;
    this.poller = poller;
    this.#libc = libc;
    this.#library = ffi.dlopen(null, SIGNATURES);
  }

  /** A second descriptor of the same socket, which is the caller's; -1 where none is left. */
  adopt(fd: number): number {
    const made = this.#library.functions.fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (made < 0) return -1;
    widenBuffers(this.#libc, made);
    if (this.#joins) joinDatagrams(this.#libc, made);
    detachProgram(this.#libc, made); // of another process that had the socket
    return made;
  }

  /** From now on each datagram comes with its mark. False: the kernel does not. */
  tellMarks(fd: number, isV6: boolean): boolean {
    return succeeds(() => tellMarks(this.#libc, fd, isV6));
  }

  /** As of `DatagramListener`. */
  sieve(fd: number, program: SocketProgram | null): boolean {
    return succeeds(() => {
      if (program === null) detachProgram(this.#libc, fd);
      else attachProgram(this.#ffi, this.#libc, fd, program);
    });
  }

  /** As of `DatagramSocket`. */
  admitOthers(fd: number): boolean {
    return succeeds(() => admitOthers(this.#libc, fd));
  }

  /** As of `DatagramSocket`. */
  chooseBy(fd: number, program: SocketProgram): boolean {
    return succeeds(() => attachChoice(this.#ffi, this.#libc, fd, program));
  }

  close(fd: number): void {
    this.#libc.close(fd);
  }
}

/** False: the kernel has no such option, or no memory. */
function succeeds(set: () => void): boolean {
  try {
    set();
    return true;
  } catch {
    return false;
  }
}
