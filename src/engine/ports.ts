import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { PlainPort } from "./plain-port.ts";
import { PLAIN, type Port } from "./port.ts";
import type { SharedTable } from "./shared-table.ts";

/** Makes the ports of one relay thread from what the main thread wrote of them. */
export class Ports {
  readonly #table: SharedTable;
  readonly #letters: MessagePort;

  constructor(table: SharedTable, letters: MessagePort) {
    this.#table = table;
    this.#letters = letters;
  }

  /** `place` is that of its descriptor. To be called in the order in which they were added. Null: it cannot be had. */
  open(place: number): Port | null {
    const { descriptors, kinds } = this.#table;
    const fd = descriptors[place] as number;
    const kind = kinds[place] as number;
    this.#letter(place);
    return kind === PLAIN ? new PlainPort(fd) : null;
  }

  #letter(place: number): Uint8Array | null {
    if (this.#table.letters[place] !== 1) return null;
    return (receiveMessageOnPort(this.#letters)?.message ?? null) as Uint8Array | null;
  }
}
