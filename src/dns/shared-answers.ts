/** Answers for other threads: what the core would dial for a name is written where they find it without asking. */
import { ADDRESS_KINDS, PINNED, valuesOf } from "#net/address/known-names.ts";
import { NameTable } from "#lib/name-table.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { KeptAnswer } from "./cache.ts";
import { eachAddress } from "./packet.ts";
import { TYPE } from "./types.ts";

/** Of a name that has its address from the hosts table, which changes with the configuration only. */
const PIN_MS = 3_600_000;

export class SharedAnswers {
  readonly #table = new NameTable();
  readonly #nowMs: () => number;
  /** Numbers of resolvers. */
  #last = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get memory(): SharedArrayBuffer {
    return this.#table.memory;
  }

  /** For one more resolver. */
  newNumber(): number {
    return ++this.#last;
  }

  /**
   * What a resolver has in its cache for a name that is in no hosts table, A or AAAA. It is found until it ends, and no longer
   * than `untilMs`.
   */
  put(
    resolver: number,
    name: string,
    type: number,
    { packet, expiresAtMs }: KeptAnswer,
    untilMs: number,
  ): void {
    let count = 0;
    let first: Uint8Array | null = null;
    eachAddress(packet, type, (address) => {
      count++;
      first ??= address;
    });
    const kind = resolver * ADDRESS_KINDS + (type === TYPE.AAAA ? 1 : 0);
    this.#table.put(kind, name, valuesOf(count, first), Math.min(expiresAtMs, untilMs), this.#nowMs());
  }

  /** The hosts table has this address for a name, and no other. */
  pin(name: string, ip: Ip, untilMs: number): void {
    const nowMs = this.#nowMs();
    this.#table.put(PINNED, name, valuesOf(1, bytesOfIp(ip)), Math.min(nowMs + PIN_MS, untilMs), nowMs);
  }

  /** What was put before is found no more. */
  clear(): void {
    this.#table.clear();
  }
}
