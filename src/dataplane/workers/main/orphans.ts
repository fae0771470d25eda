/** What a relay thread has left, or could not take over. Nothing of it runs any more, so the main thread sees to it. */
import { freeGiven } from "#platform/aead.ts";
import { nativeTls } from "#platform/tls.ts";
import {
  FRAMED,
  PLAIN,
  WIRE_NUMBERS,
  SEALED,
  TLS,
  type WireCode,
} from "#dataplane/workers/shared/wire-spec.ts";
import { FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { float64At, int32At } from "#lib/at.ts";

/** The words are those of a port's plan. */
export type Free = (kind: WireCode, numbers: Float64Array) => void;

const freeTls = (word: (at: number) => bigint): void => nativeTls()?.ssl.free(word(0));

const frees: Readonly<Record<WireCode, (word: (at: number) => bigint) => void>> = {
  [PLAIN]: () => {},
  [TLS]: freeTls,
  [FRAMED]: freeTls,
  [SEALED]: (word) => {
    freeGiven(word(0));
    freeGiven(word(1));
  },
};

export const freeOrphan: Free = (kind, numbers) => {
  frees[kind]((at) => BigInt(float64At(numbers, at)));
};

/**
 * Of the slots that the thread gave out those in which something is left. Foreign calls are made elsewhere: this walks over
 * thousands at the end of a process, and the runtime must not be compiling any when it lets go of them.
 */
export function orphanedAccepts({ descriptors, owned, acceptedSlots: accepted }: RelayMemory): number[] {
  const found: number[] = [];
  for (let slot = FIRST_ACCEPTED_SLOT; slot < FIRST_ACCEPTED_SLOT + accepted; slot++) {
    const [near, far] = [slot * 2, slot * 2 + 1];
    const isOpen = int32At(descriptors, near) >= 0 || int32At(descriptors, far) >= 0;
    if (isOpen || owned[near] !== PLAIN || owned[far] !== PLAIN) found.push(slot);
  }
  return found;
}

/** What the ports of a slot hold besides their sockets lies outside the heap. */
export function freeOrphans({ owned, wireNumbers: portWords }: RelayMemory, slot: number, free: Free): void {
  for (const index of [slot * 2, slot * 2 + 1]) {
    const kind = owned[index] as WireCode;
    if (kind === PLAIN) continue;
    owned[index] = PLAIN;
    free(kind, portWords.subarray(index * WIRE_NUMBERS, (index + 1) * WIRE_NUMBERS));
  }
}

export function closeOrphans({ descriptors }: RelayMemory, slot: number, close: (fd: number) => void): void {
  for (const index of [slot * 2, slot * 2 + 1]) {
    const fd = int32At(descriptors, index);
    descriptors[index] = -1;
    if (fd >= 0) close(fd);
  }
}
