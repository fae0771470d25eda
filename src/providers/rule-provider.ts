import { UNKNOWN, type Condition } from "#core/condition.ts";
import type { AddressRecords, Facts, FactName, RuleData } from "#core/rule.ts";
import type { Slices } from "#core/slices.ts";
import { Resource, type Prepared, type ResourceEnv, type Source } from "./resource.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { NO_CONTENTS, type Contents, type NetworkData } from "./rule-set/contents.ts";
import {
  contentsOf,
  contentsOfParts,
  type ListKind,
  type ListParts,
  type ReadClassical,
} from "./rule-set/read.ts";

export interface RuleProviderOptions extends ListKind {
  readonly source: Source;
  readonly payload: readonly string[];
  readonly classical: ReadClassical;
  readonly slices: Slices;
  /** Reads a list, in another thread where it is large. Throws where nothing of it can be used. */
  readonly read: (bytes: Uint8Array, kind: ListKind) => Promise<ListParts>;
}

export interface RuleProviderEnv extends Omit<ResourceEnv, "prepare" | "preparePayload" | "onUserInfo"> {
  /** Other contents are in use from now on. */
  readonly onChange?: () => void;
}

/** A rule list whose contents change while rules hold on to it. Nothing loaded matches nothing. */
export class RuleProvider implements RuleData, AsyncDisposable {
  readonly resource: Resource;
  readonly #options: RuleProviderOptions;
  readonly #log: RuleProviderEnv["log"];
  readonly #onChange: () => void;
  #contents: RuleData = NO_CONTENTS;
  #asksDatabases = false;

  constructor(options: RuleProviderOptions, env: RuleProviderEnv) {
    this.#options = options;
    this.#log = env.log;
    this.#onChange = env.onChange ?? (() => {});
    const { payload, source } = options;
    this.resource = new Resource(source, {
      ...env,
      prepare: async (bytes) => {
        const parts = await options.read(bytes, { behavior: options.behavior, format: options.format });
        return this.#prepared(await contentsOfParts(parts, options, options.classical, options.slices));
      },
      preparePayload:
        payload.length === 0
          ? null
          : async () =>
              this.#prepared(await contentsOf(payload, options.behavior, options.classical, options.slices)),
    });
  }

  get reads(): readonly FactName[] {
    return this.#contents.reads;
  }

  get size(): number {
    return this.#contents.size;
  }

  get condition(): Condition {
    return this.#contents.condition ?? UNKNOWN;
  }

  match(facts: Facts): boolean | undefined {
    return this.#contents.match(facts);
  }

  records(facts: Facts, known: AddressRecords | null): AddressRecords | null {
    return this.#contents.records?.(facts, known) ?? known;
  }

  /** The networks of a list of behavior ipcidr; empty for every other. */
  get networks(): readonly Cidr[] {
    return "networks" in this.#contents ? (this.#contents as NetworkData).networks() : [];
  }

  /** Its contents are of use only as long as the databases that were there when they were read. */
  get asksDatabases(): boolean {
    return this.#asksDatabases;
  }

  /** Takes what another one of the same definition has in use. */
  inherit(from: RuleProvider): void {
    this.#contents = from.#contents;
    this.#asksDatabases = from.#asksDatabases;
    this.resource.inherit(from.resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resource[Symbol.asyncDispose]();
  }

  #prepared({ data, skipped, asksDatabases = false }: Contents): Prepared {
    if (skipped.count > 0)
      this.#log.warning(
        `${this.#options.source.title}: ${skipped.count} items left out; the first is ${skipped.first}`,
      );
    return {
      commit: () => {
        this.#contents = data;
        this.#asksDatabases = asksDatabases;
        this.#onChange();
      },
      abandon: async () => {}, // nothing but memory
    };
  }
}
