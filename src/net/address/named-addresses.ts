/** Which addresses stand for a name, or may: where a thread does not know the name, the main thread decides. */
import type { Ip, IpPrefix } from "#core/session.ts";
import { NumberedNames } from "#lib/numbered-names.ts";
import { TextFilter } from "#lib/text-filter.ts";
import { AddressRange } from "./address-range.ts";
import type { Cidr } from "./cidr.ts";
import { CidrTable } from "./cidr-trie.ts";

/** Addresses that stand for names, by their numbers in a network. */
export interface NamedRange {
  readonly range: IpPrefix;
  /** Of `NumberedNames`. */
  readonly names: SharedArrayBuffer;
}

export interface NamedAddressesData {
  /** Networks of addresses that stand for nothing but a name. */
  readonly fake: readonly Cidr[];
  /** The names of these, as far as other threads know them. */
  readonly named: readonly NamedRange[];
  /** A `TextFilter` of the real addresses that a client was answered for a name, and that name is remembered. */
  readonly answered: SharedArrayBuffer;
}

export class NamedAddresses {
  readonly #fake: CidrTable;
  readonly #answered: TextFilter;
  readonly #named: readonly { readonly range: AddressRange; readonly names: NumberedNames }[];

  constructor({ fake, named, answered }: NamedAddressesData) {
    this.#fake = new CidrTable(fake);
    this.#named = named.map(({ range, names }) => ({
      range: new AddressRange(range),
      names: new NumberedNames(names),
    }));
    this.#answered = new TextFilter(answered);
  }

  /** The name for which a fake address was answered; null: it is none, or only the main thread knows. */
  nameOf(ip: Ip): string | null {
    for (const { range, names } of this.#named) {
      const offset = range.offsetOf(ip);
      if (offset !== null) return names.find(offset);
    }
    return null;
  }

  mayHave(ip: Ip): boolean {
    return this.#fake.holds(ip) || this.#answered.mayHave(ip);
  }
}
