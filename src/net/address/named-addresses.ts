/** Which addresses may stand for a name, for threads that do not know the name: the main thread decides about those. */
import type { Ip } from "#core/session.ts";
import { TextFilter } from "#lib/text-filter.ts";
import type { Cidr } from "./cidr.ts";
import { CidrTable } from "./cidr-trie.ts";

export interface NamedAddressesData {
  /** Networks of addresses that stand for nothing but a name. */
  readonly fake: readonly Cidr[];
  /** A `TextFilter` of the real addresses that a client was answered for a name, and that name is remembered. */
  readonly answered: SharedArrayBuffer;
}

export class NamedAddresses {
  readonly #fake: CidrTable;
  readonly #answered: TextFilter;

  constructor({ fake, answered }: NamedAddressesData) {
    this.#fake = new CidrTable(fake);
    this.#answered = new TextFilter(answered);
  }

  mayHave(ip: Ip): boolean {
    return this.#fake.holds(ip) || this.#answered.mayHave(ip);
  }
}
