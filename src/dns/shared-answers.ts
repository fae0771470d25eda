/** Answers for other threads: what the core would dial for a name is written where they find it without asking. */
import { ADDRESS_KINDS, PINNED, pinnedValues, valuesOf } from "#net/address/known-names.ts";
import { NameTables, type NameTable } from "#lib/name-table.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { KeptAnswer } from "./cache.ts";
import type { HostsWatcher } from "./hosts.ts";
import { eachAnswer } from "./packet.ts";
import { TYPE } from "./types.ts";

/** Of a name that has its address from the hosts table, which changes with the configuration only. */
const PIN_MS = 3_600_000;
/** That a name has none there. There are many, which take the places of answers that end before. */
const UNPINNED_MS = 300_000;

export class SharedAnswers implements HostsWatcher, Disposable {
  readonly #tables: NameTables;
  readonly #table: NameTable;
  readonly #nowMs: () => number;
  /** Then the table has another user, and what is still under way here is not for it. */
  #isClosed = false;
  /** Numbers of resolvers. */
  #last = 0;

  constructor(nowMs: () => number, tables: NameTables = new NameTables()) {
    this.#nowMs = nowMs;
    this.#tables = tables;
    this.#table = tables.take();
  }

  /** To be called when no thread decides by it any more. */
  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#tables.giveBack(this.#table);
  }

  get memory(): SharedArrayBuffer {
    return this.#table.memory;
  }

  /** For one more resolver. */
  newNumber(): number {
    return ++this.#last;
  }

  /**
   * What a resolver has in its cache for a name that is in no hosts table, A or AAAA. It is found until it ends.
   */
  put(resolver: number, name: string, type: number, { packet, expiresAtMs }: KeptAnswer): void {
    if (this.#isClosed) return;
    let count = 0;
    let first: Uint8Array | null = null;
    eachAnswer(packet, type, (address) => {
      count++;
      first ??= address;
    });
    const kind = resolver * ADDRESS_KINDS + (type === TYPE.AAAA ? 1 : 0);
    this.#table.put(kind, name, valuesOf(count, first), expiresAtMs, this.#nowMs());
  }

  /** The hosts table has these addresses for a name, of which each connection takes another. */
  pin(name: string, ips: readonly Ip[]): void {
    const values = this.#isClosed ? null : pinnedValues(ips.map((ip) => bytesOfIp(ip)));
    if (values === null) return;
    const nowMs = this.#nowMs();
    this.#table.put(PINNED, name, values, nowMs + PIN_MS, nowMs);
  }

  /** The hosts table does not have the name. */
  pinNone(name: string): void {
    if (this.#isClosed) return;
    const nowMs = this.#nowMs();
    this.#table.put(PINNED, name, valuesOf(0, null), nowMs + UNPINNED_MS, nowMs);
  }

  /** The hosts tables are as they were, and are looked at again so much later: until then entries may be believed. */
  checked(nowMs: number, againMs: number): void {
    if (!this.#isClosed) this.#table.limit(nowMs + againMs, againMs);
  }

  /** What was put before is found no more. */
  changed(): void {
    if (!this.#isClosed) this.#table.clear();
  }
}
