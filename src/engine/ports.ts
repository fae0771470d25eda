import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Remains } from "#core/handover.ts";
import { openSsl, type Ssl } from "#platform/linux/ssl.ts";
import { AnyTlsPort } from "./anytls-port.ts";
import { PlainPort } from "./plain-port.ts";
import { PLAIN, PORT_WORDS, SEALED, SPARED, TLS, type Port } from "./port.ts";
import { SealedMemory } from "./sealed-memory.ts";
import { SealedPort } from "./sealed-port.ts";
import { RETURNED, type SharedTable } from "./shared-table.ts";
import { TlsPort } from "./tls-port.ts";

/** What the thread sends back of a place. */
export interface ReturnedLetter {
  readonly place: number;
  readonly remains: Remains;
}

/** Makes the ports of one relay thread from what the main thread wrote of them. */
export class Ports {
  readonly #table: SharedTable;
  readonly #letters: MessagePort;
  readonly #buffer: Uint8Array;
  /** Opened with the first port that needs it; null where it cannot be had. */
  #ssl: Ssl | null | undefined;
  #sealed: SealedMemory | null | undefined;

  /** `buffer` is the thread's. */
  constructor(table: SharedTable, letters: MessagePort, buffer: Uint8Array) {
    this.#table = table;
    this.#letters = letters;
    this.#buffer = buffer;
  }

  /**
   * `place` is that of its descriptor. To be called in the order in which they were added. Null: it cannot be had, and what
   * its words name is left to the main thread.
   */
  open(place: number): Port | null {
    const { descriptors, kinds } = this.#table;
    const fd = descriptors[place] as number;
    const kind = kinds[place] as number;
    const letter = this.#letter(place);
    if (kind === PLAIN) return new PlainPort(fd);
    if (kind === SEALED) return this.#openSealed(place, fd, letter);
    const address = BigInt(this.#word(place, 0));
    const ssl = this.#sslFor(address);
    if (ssl === null) return null;
    return kind === TLS ? new TlsPort(ssl, address, fd) : this.#openAnyTls(place, fd, { ssl, letter });
  }

  #openSealed(place: number, fd: number, letter: Uint8Array | null): Port | null {
    if (this.#sealed === undefined) this.#sealed = SealedMemory.open(this.#buffer);
    if (this.#sealed === null) return null;
    const spare = (): void => void (this.#table.kinds[place] = SPARED);
    return new SealedPort(this.#sealed, fd, { word: (at) => this.#word(place, at), letter, spare });
  }

  #openAnyTls(place: number, fd: number, { ssl, letter }: { ssl: Ssl; letter: Uint8Array | null }): Port {
    const spare = (remains: Remains): void => {
      this.#letters.postMessage({ place, remains } satisfies ReturnedLetter);
      this.#table.letters[place] = RETURNED;
      this.#table.kinds[place] = SPARED;
    };
    return new AnyTlsPort(ssl, fd, { word: (at) => this.#word(place, at), letter, spare });
  }

  /** Where that object writes from now on. */
  #sslFor(address: bigint): Ssl | null {
    const ssl = this.ssl();
    return ssl?.batch(address) === true ? ssl : null;
  }

  /** The thread's. */
  ssl(): Ssl | null {
    if (this.#ssl === undefined) this.#ssl = openSsl(this.#buffer);
    return this.#ssl;
  }

  /** To be called before a port is dropped: should this thread die meanwhile, nobody frees the same a second time. */
  letGo(place: number): void {
    this.#table.owned[place] = PLAIN;
  }

  #word(place: number, at: number): number {
    return this.#table.portWords[place * PORT_WORDS + at] as number;
  }

  #letter(place: number): Uint8Array | null {
    if (this.#table.letters[place] !== 1) return null;
    return (receiveMessageOnPort(this.#letters)?.message ?? null) as Uint8Array | null;
  }
}
