/**
 * Values on their way from a reading thread to the main thread: flattened into blocks that are taken apart one by one, so
 * that the event loop turns in between whatever their size. A structured clone would come in one piece and without classes.
 */
import { deserialize, serialize } from "node:v8";
import { Plain } from "#core/fields.ts";
import type { Slices } from "#core/slices.ts";
import type { Steps } from "#lib/steps.ts";
import { itemAt } from "#lib/at.ts";

/** Whole values and the heads of lists and maps in one block; a block takes well under a millisecond. */
const BLOCK_TOKENS = 1000;
const BLOCK_CHARACTERS = 64 * 1024;
/** Longer text is sent once and named again, as lists and maps are: aliases of YAML can put one into thousands of places. */
const LONG_TEXT = 64;

export type PackedValue = readonly Uint8Array<ArrayBuffer>[];

/** What both threads have, by a name; such objects are not sent. */
export interface References {
  nameOf(value: object): string | null;
  named(name: string): unknown;
}

const NO_REFERENCES: References = { nameOf: () => null, named: () => undefined };

/** What a token is; `object` has the usual prototype, `bare` none. Numbers, for a word would be sent with every token. */
const KIND = { value: 0, again: 1, plain: 2, reference: 3, list: 4, map: 5, object: 6, bare: 7 } as const;
type Kind = (typeof KIND)[keyof typeof KIND];

/** Kinds and operands of as many tokens: a value, a name, the number of what was sent before, or how many members follow. */
interface Block {
  readonly kinds: Kind[];
  readonly operands: unknown[];
}

/** Plain data with ES maps, bytes and `Plain`; other instances throw a `TypeError`. */
export function pack(value: unknown, references: References = NO_REFERENCES): PackedValue {
  const packer = new Packer(references);
  packer.add(value);
  return packer.end();
}

class Packer {
  readonly #references: References;
  readonly #done: Uint8Array<ArrayBuffer>[] = [];
  /** By number: in the order in which they were complete. */
  readonly #sent = new Map<unknown, number>();
  #block: Block = { kinds: [], operands: [] };
  #characters = 0;

  constructor(references: References) {
    this.#references = references;
  }

  add(value: unknown): void {
    if (typeof value === "string") return this.#addText(value);
    if (typeof value !== "object" || value === null || value instanceof Uint8Array)
      return this.#put(KIND.value, value);
    if (value instanceof Plain) {
      this.#put(KIND.plain, null);
      return this.#addText(value.source);
    }
    const name = this.#references.nameOf(value);
    if (name !== null) return this.#put(KIND.reference, name);
    const sent = this.#sent.get(value);
    if (sent !== undefined) return this.#put(KIND.again, sent);
    this.#addMembers(value);
    this.#sent.set(value, this.#sent.size);
  }

  end(): PackedValue {
    this.#cut();
    return this.#done;
  }

  #addMembers(value: object): void {
    if (Array.isArray(value)) {
      this.#put(KIND.list, value.length);
      for (const item of value) this.add(item);
      return;
    }
    const entries = value instanceof Map ? [...value] : Object.entries(value);
    this.#put(value instanceof Map ? KIND.map : kindOf(value), entries.length);
    for (const [key, item] of entries) {
      this.add(key);
      this.add(item);
    }
  }

  #addText(text: string): void {
    if (text.length < LONG_TEXT) return this.#put(KIND.value, text);
    const sent = this.#sent.get(text);
    if (sent !== undefined) return this.#put(KIND.again, sent);
    this.#sent.set(text, this.#sent.size);
    this.#characters += text.length;
    this.#put(KIND.value, text);
  }

  #put(kind: Kind, operand: unknown): void {
    this.#block.kinds.push(kind);
    this.#block.operands.push(operand);
    if (this.#block.operands.length >= BLOCK_TOKENS || this.#characters >= BLOCK_CHARACTERS) this.#cut();
  }

  #cut(): void {
    this.#done.push(Uint8Array.from(serialize(this.#block)));
    this.#block = { kinds: [], operands: [] };
    this.#characters = 0;
  }
}

function kindOf(value: object): Kind {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return KIND.bare;
  if (prototype === Object.prototype) return KIND.object;
  throw new TypeError(`an instance of ${value.constructor.name} cannot be sent`);
}

/** The value with its lists and objects frozen. */
export function unpack(
  packed: PackedValue,
  slices: Slices,
  references: References = NO_REFERENCES,
): Promise<unknown> {
  return slices.run(new Unpacker(packed, references).value());
}

class Unpacker {
  readonly #packed: PackedValue;
  readonly #references: References;
  readonly #sent: unknown[] = [];
  #block: Block = { kinds: [], operands: [] };
  #blockAt = 0;
  #at = 0;

  constructor(packed: PackedValue, references: References) {
    this.#packed = packed;
    this.#references = references;
  }

  /** The next value; stops between two blocks. */
  *value(): Steps<unknown> {
    if (this.#at === this.#block.operands.length) {
      yield;
      this.#block = deserialize(itemAt(this.#packed, this.#blockAt++));
      this.#at = 0;
    }
    const kind = itemAt(this.#block.kinds, this.#at);
    const operand = this.#block.operands[this.#at++];
    switch (kind) {
      case KIND.value:
        return typeof operand === "string" && operand.length >= LONG_TEXT ? this.#complete(operand) : operand;
      case KIND.again:
        return this.#sent[countOf(operand)];
      case KIND.plain:
        return new Plain(textOf(yield* this.value()));
      case KIND.reference:
        return this.#references.named(textOf(operand));
      case KIND.list:
        return this.#complete(yield* this.#list(countOf(operand)));
      case KIND.map:
        return this.#complete(yield* this.#map(countOf(operand)));
      default:
        return this.#complete(yield* this.#object(countOf(operand), kind === KIND.bare));
    }
  }

  #complete<T>(value: T): T {
    this.#sent.push(value);
    return value;
  }

  *#list(length: number): Steps<unknown> {
    const list: unknown[] = [];
    for (let left = length; left > 0; left--) list.push(yield* this.value());
    return Object.freeze(list);
  }

  *#map(size: number): Steps<unknown> {
    const map = new Map<unknown, unknown>();
    for (let left = size; left > 0; left--) map.set(yield* this.value(), yield* this.value());
    return map;
  }

  *#object(size: number, isBare: boolean): Steps<unknown> {
    const object: Record<string, unknown> = isBare ? Object.create(null) : {};
    for (let left = size; left > 0; left--) {
      const key = textOf(yield* this.value());
      const value = yield* this.value();
      if (key !== "__proto__" || isBare) object[key] = value;
      else Object.defineProperty(object, key, { value, enumerable: true }); // a key like any other
    }
    return Object.freeze(object);
  }
}

function countOf(operand: unknown): number {
  if (typeof operand !== "number") throw new TypeError("a packed value has no number where one belongs");
  return operand;
}

function textOf(operand: unknown): string {
  if (typeof operand !== "string") throw new TypeError("a packed value has no text where one belongs");
  return operand;
}

/** What can be handed over without a copy; others among `values` have nothing. */
export function buffersOf(values: readonly unknown[]): ArrayBuffer[] {
  return values.flatMap((value) =>
    ArrayBuffer.isView(value) && value.buffer instanceof ArrayBuffer ? [value.buffer] : [],
  );
}
