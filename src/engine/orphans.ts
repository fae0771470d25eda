/** What a relay thread has left, or could not take over. Nothing of it runs any more, so the main thread sees to it. */
import { freeGiven } from "#platform/aead.ts";
import { nativeTls } from "#platform/tls.ts";
import { ANYTLS, PLAIN, PORT_WORDS, SEALED, TLS, type PortKind } from "./port.ts";
import { FRONT, type SharedTable } from "./shared-table.ts";

/** The words are those of a port's plan. */
export type Free = (kind: PortKind, words: Float64Array) => void;

const freeTls = (word: (at: number) => bigint): void => nativeTls()?.ssl.free(word(0));

const frees: Readonly<Record<PortKind, (word: (at: number) => bigint) => void>> = {
  [PLAIN]: () => {},
  [TLS]: freeTls,
  [ANYTLS]: freeTls,
  [SEALED]: (word) => {
    freeGiven(word(0));
    freeGiven(word(1));
  },
};

export const freeOrphan: Free = (kind, words) => {
  frees[kind]((at) => BigInt(words[at] as number));
};

/**
 * Of the slots that the thread gave out those in which something is left. Foreign calls are made elsewhere: this walks over
 * thousands at the end of a process, and the runtime must not be compiling any when it lets go of them.
 */
export function orphanedFronts({ descriptors, owned, fronted }: SharedTable): number[] {
  const found: number[] = [];
  for (let slot = FRONT; slot < FRONT + fronted; slot++) {
    const [near, far] = [slot * 2, slot * 2 + 1];
    const isOpen = (descriptors[near] as number) >= 0 || (descriptors[far] as number) >= 0;
    if (isOpen || owned[near] !== PLAIN || owned[far] !== PLAIN) found.push(slot);
  }
  return found;
}

/** What the ports of a slot hold besides their sockets lies outside the heap. */
export function freeOrphans({ owned, portWords }: SharedTable, slot: number, free: Free): void {
  for (const place of [slot * 2, slot * 2 + 1]) {
    const kind = owned[place] as PortKind;
    if (kind === PLAIN) continue;
    owned[place] = PLAIN;
    free(kind, portWords.subarray(place * PORT_WORDS, (place + 1) * PORT_WORDS));
  }
}

export function closeOrphans({ descriptors }: SharedTable, slot: number, close: (fd: number) => void): void {
  for (const place of [slot * 2, slot * 2 + 1]) {
    const fd = descriptors[place] as number;
    descriptors[place] = -1;
    if (fd >= 0) close(fd);
  }
}
