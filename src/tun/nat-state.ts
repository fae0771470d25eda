/** Flows of a NAT table as another process of weir takes them over. */
import { int32At } from "#lib/at.ts";

export interface NatState {
  /** Words of a key. */
  readonly words: number;
  /** Of each flow its slot, whether a socket has it (1, 0), and its key. */
  readonly flows: Int32Array;
  /** Slots that are free, in the order in which they are given out. */
  readonly free: Int32Array;
}

const HEAD_WORDS = 3;

/** WORDS(4) FLOWS(4, words of them) FREE(4, slots) flows free; 32-bit words of the host. */
export function encodeNatState({ words, flows, free }: NatState): Uint8Array {
  const all = new Int32Array(HEAD_WORDS + flows.length + free.length);
  all.set([words, flows.length, free.length]);
  all.set(flows, HEAD_WORDS);
  all.set(free, HEAD_WORDS + flows.length);
  return new Uint8Array(all.buffer);
}

/** Null: they are not those of a table with keys of so many words and so many slots. */
export function decodeNatState(bytes: Uint8Array, words: number, slots: number): NatState | null {
  if (bytes.length % 4 !== 0 || bytes.length < HEAD_WORDS * 4) return null;
  const all = new Int32Array(Uint8Array.from(bytes).buffer);
  const [itsWords, flowWords = 0, freeSlots = 0] = all;
  const row = words + 2;
  if (itsWords !== words || flowWords < 0 || flowWords % row !== 0) return null;
  if (all.length !== HEAD_WORDS + flowWords + freeSlots || flowWords / row + freeSlots !== slots) return null;
  const flows = all.subarray(HEAD_WORDS, HEAD_WORDS + flowWords);
  const free = all.subarray(HEAD_WORDS + flowWords);
  return isWhole(flows, row, free, slots) ? { words, flows, free } : null;
}

/** Is each slot there once? */
function isWhole(flows: Int32Array, row: number, free: Int32Array, slots: number): boolean {
  const seen = new Uint8Array(slots);
  const isNew = (slot: number): boolean => {
    if (slot < 0 || slot >= slots || seen[slot] === 1) return false;
    seen[slot] = 1;
    return true;
  };
  for (let at = 0; at < flows.length; at += row) if (!isNew(int32At(flows, at))) return false;
  return free.every(isNew);
}
