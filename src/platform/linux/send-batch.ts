/**
 * Datagrams that wait for the end of a turn of the event loop. Then those of one socket go with one sendmmsg(2), and runs
 * of them to one peer as one message that the kernel cuts into datagrams (UDP_SEGMENT, udp(7)).
 */
import type * as Ffi from "node:ffi";
import { NAME_BYTES } from "./message-layout.ts";
import { SendMessages } from "./send-messages.ts";
import { byteAt, uint32At, itemAt, int32At } from "#lib/at.ts";

/** Datagrams and bytes of all sockets together that wait; before the next one they go at once. */
const MOST_WAITING = 1024;
const MEMORY_BYTES = 1024 * 1024;
/** A longer payload is in no UDP datagram. */
const MOST_PAYLOAD_BYTES = 65_535;
/** Of one message that is cut: every kernel that cuts takes so many, and a packet of either family holds so much. */
const MOST_SEGMENTS = 64;
const MOST_RUN_BYTES = 65_487;

const EIO = 5;
const EAGAIN = 11;
const EINVAL = 22;
const EMSGSIZE = 90;
const EOPNOTSUPP = 95;
/** Errors of devices whose packets are shorter, or which cannot split a batch at all. */
const REFUSALS: ReadonlySet<number> = new Set([EIO, EINVAL, EMSGSIZE, EOPNOTSUPP]);

const NONE = -1;

/** A socket as `SendBatch` knows it. */
export interface Outgoing {
  readonly fd: number;
  /** The first and the last datagram that wait. */
  first: number;
  last: number;
  /** The peer of the last one. */
  name: Uint8Array | null;
  /** The longest datagrams that the kernel is asked to cut; 0: none. */
  segmentBytes: number;
}

/** Of one thread. */
export class SendBatch {
  readonly #cuts: boolean;
  readonly #memory = new Uint8Array(new ArrayBuffer(MEMORY_BYTES));
  readonly #names = new Uint8Array(new ArrayBuffer(MOST_WAITING * NAME_BYTES));
  readonly #messages: SendMessages;
  // Of each datagram that waits: where and how long it is, the slot of its peer's name, and the socket's next one.
  readonly #starts = new Uint32Array(MOST_WAITING);
  readonly #lengths = new Uint32Array(MOST_WAITING);
  readonly #slots = new Uint32Array(MOST_WAITING);
  readonly #nexts = new Int32Array(MOST_WAITING);
  readonly #nameBytes = new Uint32Array(MOST_WAITING);
  readonly #marks = new Uint8Array(MOST_WAITING);
  /** Of each message: its first datagram. */
  readonly #firsts = new Uint32Array(MOST_WAITING);
  readonly #sockets: Outgoing[] = [];
  readonly #onTurnEnd = (): void => {
    this.#turnEnds = false;
    this.flush();
  };
  #waiting = 0;
  #used = 0;
  #turnEnds = false;

  /** `cuts`: the kernel can. */
  constructor(ffi: typeof Ffi, cuts: boolean) {
    this.#cuts = cuts;
    this.#messages = new SendMessages(ffi, this.#memory, this.#names, MOST_WAITING);
  }

  /** The descriptor stays the caller's; the caller flushes before it closes it. */
  open(fd: number): Outgoing {
    return { fd, first: NONE, last: NONE, name: null, segmentBytes: this.#cuts ? MOST_RUN_BYTES : 0 };
  }

  /**
   * Copies `head` and `payload`, one behind the other. `name` is a sockaddr that must not change afterwards; equal
   * objects mean equal peers. `isMarked`: with ECT(0).
   */
  put(
    socket: Outgoing,
    head: Uint8Array | null,
    payload: Uint8Array,
    name: Uint8Array,
    isMarked = false,
  ): void {
    const headBytes = head === null ? 0 : head.length;
    const bytes = headBytes + payload.length;
    if (bytes > MOST_PAYLOAD_BYTES) return;
    const start = this.#take(1, bytes);
    if (head !== null) this.#memory.set(head, start);
    this.#memory.set(payload, start + headBytes);
    this.#marks[this.#waiting] = isMarked ? 1 : 0;
    this.#add(socket, start, bytes, name);
  }

  /** Datagrams of `size` bytes each, one behind another; the last may be shorter. More than may wait are dropped. */
  putRun(socket: Outgoing, payloads: Uint8Array, size: number, name: Uint8Array, isMarked = false): void {
    const end = payloads.length;
    const count = Math.ceil(end / size);
    if (size > MOST_PAYLOAD_BYTES || count > MOST_WAITING || end > MEMORY_BYTES) return;
    const start = this.#take(count, end);
    this.#memory.set(payloads, start);
    this.#marks.fill(isMarked ? 1 : 0, this.#waiting, this.#waiting + count);
    for (let from = 0; from < end; from += size)
      this.#add(socket, start + from, Math.min(size, end - from), name);
  }

  /** Room for so many datagrams of so many bytes together; answers where it begins. */
  #take(count: number, bytes: number): number {
    if (this.#waiting + count > MOST_WAITING || this.#used + bytes > MEMORY_BYTES) this.flush();
    if (!this.#turnEnds) setImmediate(this.#onTurnEnd);
    this.#turnEnds = true;
    const start = this.#used;
    this.#used += bytes;
    return start;
  }

  #add(socket: Outgoing, start: number, bytes: number, name: Uint8Array): void {
    const at = this.#waiting++;
    this.#starts[at] = start;
    this.#lengths[at] = bytes;
    this.#nexts[at] = NONE;
    this.#slots[at] = this.#slotOf(socket, name, at);
    if (socket.first === NONE) {
      socket.first = at;
      this.#sockets.push(socket);
    } else this.#nexts[socket.last] = at;
    socket.last = at;
    socket.name = name;
  }

  #slotOf({ first, last, name: lastName }: Outgoing, name: Uint8Array, at: number): number {
    if (first !== NONE && name === lastName) return uint32At(this.#slots, last);
    this.#names.set(name, at * NAME_BYTES);
    this.#nameBytes[at] = name.length;
    return at;
  }

  /** Sends all that waits. What the kernel does not take now is lost, as on any network. */
  flush(): void {
    for (let at = 0; at < this.#sockets.length; at++) this.#sendAll(itemAt(this.#sockets, at));
    this.#sockets.length = 0;
    this.#waiting = 0;
    this.#used = 0;
  }

  #sendAll(socket: Outgoing): void {
    while (socket.first !== NONE) {
      this.#build(socket);
      socket.first = this.#send(socket);
    }
    socket.name = null;
  }

  #build({ first, segmentBytes }: Outgoing): void {
    const messages = this.#messages;
    const lengths = this.#lengths;
    const nexts = this.#nexts;
    messages.clear();
    for (let at = first; at !== NONE;) {
      const slot = uint32At(this.#slots, at);
      const size = uint32At(lengths, at);
      this.#firsts[messages.count] = at;
      messages.begin(slot, uint32At(this.#nameBytes, slot), uint32At(this.#starts, at), size);
      const mark = byteAt(this.#marks, at);
      if (mark === 1) messages.mark();
      at = int32At(nexts, at);
      if (size === 0 || size > segmentBytes) continue;
      let count = 1;
      let total = size;
      let isLast = false;
      while (at !== NONE && !isLast && count < MOST_SEGMENTS && this.#slots[at] === slot) {
        const length = uint32At(lengths, at);
        if (length === 0 || length > size || total + length > MOST_RUN_BYTES || this.#marks[at] !== mark)
          break;
        messages.append(uint32At(this.#starts, at), length);
        count++;
        total += length;
        isLast = length < size; // only the last one of a run may be shorter
        at = int32At(nexts, at);
      }
      if (count > 1) messages.cut(size);
    }
  }

  /** Answers with the datagram to begin anew with, where the kernel refuses to cut. */
  #send(socket: Outgoing): number {
    const messages = this.#messages;
    for (let from = 0; from < messages.count;) {
      const sent = messages.send(socket.fd, from);
      if (sent > 0) from += sent;
      else if (sent === -EAGAIN) return NONE;
      else if (messages.isCut(from) && REFUSALS.has(-sent)) {
        const first = uint32At(this.#firsts, from);
        const isSize = sent === -EMSGSIZE || sent === -EINVAL;
        socket.segmentBytes = isSize ? uint32At(this.#lengths, first) - 1 : 0;
        return first;
      } else from++; // an error of this one, or an earlier one's from afar: it says nothing about the next
    }
    return NONE;
  }
}
