/** How long packets to clients may be where a hop on their way has said so (RFC 1191, RFC 8201). */
import { byteAt, int32At } from "#lib/at.ts";
import { FlowTable } from "./flow-table.ts";
import { IdleList } from "./idle-list.ts";
import { LEAST_MTU } from "#net/packet/packet.ts";

/** At the bound the client that was learnt of longest ago gives way. */
const MOST_CLIENTS = 1024;
/** Then longer packets are tried again: the way may be another one. */
const KEPT_MS = 600_000;
/** What any IPv4 host takes, cut or whole (RFC 791 §3.1); a hop that says less is not believed. */
const LEAST_V4 = 576;
const NONE = -1;

/** One family. */
export class PathMtus {
  readonly #least: number;
  readonly #words: number;
  readonly #clients: FlowTable;
  readonly #mtus = new Int32Array(MOST_CLIENTS);
  /** By when they were learnt of. */
  readonly #line = new IdleList(MOST_CLIENTS);

  constructor(family: 4 | 6) {
    this.#least = family === 4 ? LEAST_V4 : LEAST_MTU;
    this.#words = family === 4 ? 1 : 4;
    this.#clients = new FlowTable(MOST_CLIENTS, this.#words);
  }

  /** Packets to the address at offset `at` arrive up to this length. 0 says that they are too long, not how much. */
  learn(bytes: Uint8Array, at: number, mtu: number, nowMs: number): void {
    const known = this.#find(bytes, at);
    const slot = known === NONE ? this.#insert(nowMs) : known;
    const most = Math.max(this.#least, Math.min(mtu, 0xffff));
    if (known !== NONE && most >= int32At(this.#mtus, slot)) return;
    this.#mtus[slot] = most;
    this.#line.touch(slot, nowMs);
  }

  /** The longest packet to the address at offset `at`; `otherwise` where no hop has said a thing, or it is longer. */
  most(bytes: Uint8Array, at: number, otherwise: number): number {
    if (this.#clients.size === 0) return otherwise;
    const slot = this.#find(bytes, at);
    return slot === NONE ? otherwise : Math.min(otherwise, int32At(this.#mtus, slot));
  }

  /** About once a second. */
  tick(nowMs: number): void {
    while (this.#line.hasRested(KEPT_MS, nowMs)) this.#forgetHead();
  }

  #find(bytes: Uint8Array, at: number): number {
    for (let word = 0; word < this.#words; word++) {
      const from = at + word * 4;
      this.#clients.key[word] =
        (byteAt(bytes, from) << 24) |
        (byteAt(bytes, from + 1) << 16) |
        (byteAt(bytes, from + 2) << 8) |
        byteAt(bytes, from + 3);
    }
    return this.#clients.find();
  }

  #insert(nowMs: number): number {
    if (this.#clients.size === MOST_CLIENTS) this.#forgetHead();
    const slot = this.#clients.insert();
    this.#line.append(slot, nowMs);
    return slot;
  }

  #forgetHead(): void {
    const slot = this.#line.head;
    this.#line.remove(slot);
    this.#clients.delete(slot);
  }
}
