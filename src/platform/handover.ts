/** A way between two processes of weir on which descriptors can go, too. */
import { SystemError, openLibc, type Libc, libcOf } from "./linux/libc.ts";
import { UnixPackets, type Credentials, type Packet } from "./linux/unix-packets.ts";
import { UV_READABLE, UV_WRITABLE, Poller, type ReadinessWatch } from "./linux/uv-poll.ts";
import { openFfi } from "./ffi.ts";

export { MOST_PACKET_BYTES } from "./linux/unix-packets.ts";
export type { Credentials, Packet } from "./linux/unix-packets.ts";

/** Packets that wait for room; the other side reads all the time, so that more are a sign that it hangs. */
const MOST_WAITING = 4096;

/** Null where this system or runtime has nothing to hand descriptors over by. */
export function openHandover(): Handover | null {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) return null;
  const ffi = openFfi();
  if (ffi === null) return null;
  const libc = libcOf(ffi);
  return new Handover(libc, new UnixPackets(ffi, libc), new Poller(ffi));
}

/** Another descriptor of the same file, which the caller owns. Throws `SystemError`. */
export function duplicateDescriptor(fd: number): number {
  const libc = openLibc();
  if (libc === null) throw new Error("this runtime cannot duplicate a descriptor");
  return libc.duplicate(fd);
}

export class Handover {
  readonly #libc: Libc;
  readonly #packets: UnixPackets;
  readonly #poller: Poller;

  constructor(libc: Libc, packets: UnixPackets, poller: Poller) {
    this.#libc = libc;
    this.#packets = packets;
    this.#poller = poller;
  }

  /** One end for this process; `theirs` is to be given to another one as it starts, and closed here. Throws `SystemError`. */
  pair(): { readonly link: PacketLink; readonly theirs: number } {
    const [own, theirs] = this.#packets.pair();
    this.#packets.askForSenders(own);
    return { link: this.#link(own), theirs };
  }

  /** The end that this process was started with, and who made it. Throws `SystemError` where it is no such end. */
  adopt(fd: number): { readonly link: PacketLink; readonly maker: Credentials } {
    return { maker: this.#packets.maker(fd), link: this.#link(fd) };
  }

  /** Who is at the other end of a connected Unix socket. Throws `SystemError`. */
  peerOf(fd: number): Credentials {
    return this.#packets.maker(fd);
  }

  close(fd: number): void {
    this.#libc.close(fd);
  }

  #link(fd: number): PacketLink {
    return new PacketLink(fd, this.#libc, this.#packets, this.#poller);
  }
}

interface Waiting {
  readonly bytes: Uint8Array;
  readonly descriptor: number | null;
}

/** One end. It keeps the process alive while it is open. */
export class PacketLink implements Disposable {
  readonly #fd: number;
  readonly #libc: Libc;
  readonly #packets: UnixPackets;
  readonly #watch: ReadinessWatch;
  readonly #waiting: Waiting[] = [];
  readonly #ended = Promise.withResolvers<void>();
  #onPacket: ((packet: Packet) => void) | null = null;
  #isOpen = true;

  constructor(fd: number, libc: Libc, packets: UnixPackets, poller: Poller) {
    this.#fd = fd;
    this.#libc = libc;
    this.#packets = packets;
    this.#watch = poller.watchReadiness(fd, (events) => this.#ready(events));
  }

  /** Settles when the other end is gone, or this one closed. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Begins to read; `on` owns the descriptors of a packet and must not throw. */
  receive(on: (packet: Packet) => void): void {
    this.#onPacket = on;
    this.#want();
  }

  /** In order. The descriptor stays the caller's, and must stay open until `flushed` where the queue is long. */
  send(bytes: Uint8Array, descriptor: number | null = null): void {
    if (!this.#isOpen) return;
    if (this.#waiting.length >= MOST_WAITING) return this[Symbol.dispose](); // the other process hangs
    this.#waiting.push({ bytes, descriptor });
    this.#sendAll();
  }

  /** The other end may be gone with something unread. */
  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#waiting.length = 0;
    this.#watch.close();
    this.#libc.close(this.#fd);
    this.#ended.resolve();
  }

  #ready(events: number): void {
    if ((events & UV_WRITABLE) !== 0) this.#sendAll();
    if ((events & UV_READABLE) !== 0) this.#readAll();
  }

  #readAll(): void {
    while (this.#isOpen && this.#onPacket !== null) {
      const packet = this.#receive();
      if (packet === null) return;
      if (packet === "end") return this[Symbol.dispose]();
      this.#onPacket(packet);
    }
  }

  /** Another program may send anything: what is no packet of ours is as good as its end. */
  #receive(): Packet | "end" | null {
    try {
      return this.#packets.receive(this.#fd);
    } catch (error) {
      if (error instanceof SystemError || error instanceof RangeError) return "end";
      throw error;
    }
  }

  #sendAll(): void {
    try {
      for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
        if (!this.#packets.send(this.#fd, next.bytes, next.descriptor)) break;
        this.#waiting.shift();
      }
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      return this.#stopSending(); // what has come before the end is still to be read
    }
    this.#want();
  }

  #stopSending(): void {
    this.#waiting.length = 0;
    this.#readAll();
    this[Symbol.dispose]();
  }

  #want(): void {
    const reads = this.#onPacket === null ? 0 : UV_READABLE;
    this.#watch.want(reads | (this.#waiting.length > 0 ? UV_WRITABLE : 0));
  }
}
