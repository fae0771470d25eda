import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { openSsl, type Ssl } from "#platform/linux/ssl.ts";
import { PlainPort } from "./plain-port.ts";
import { PLAIN, PORT_WORDS, SPARED, TLS, type Port } from "./port.ts";
import { SealedMemory } from "./sealed-memory.ts";
import { SealedPort } from "./sealed-port.ts";
import type { SharedTable } from "./shared-table.ts";
import { TlsPort } from "./tls-port.ts";

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
    return kind === TLS ? this.#openTls(place, fd) : this.#openSealed(place, fd, letter);
  }

  #openSealed(place: number, fd: number, letter: Uint8Array | null): Port | null {
    if (this.#sealed === undefined) this.#sealed = SealedMemory.open(this.#buffer);
    if (this.#sealed === null) return null;
    const spare = (): void => void (this.#table.kinds[place] = SPARED);
    return new SealedPort(this.#sealed, fd, { word: (at) => this.#word(place, at), letter, spare });
  }

  #openTls(place: number, fd: number): Port | null {
    if (this.#ssl === undefined) this.#ssl = openSsl(this.#buffer);
    const address = BigInt(this.#word(place, 0));
    if (this.#ssl === null) return null;
    return this.#ssl.batch(address) ? new TlsPort(this.#ssl, address, fd) : null;
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
