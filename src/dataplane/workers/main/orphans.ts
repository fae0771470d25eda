/** Closes and frees what a worker that has ended left behind, or could not take over. */
import { freeGiven } from "#platform/aead.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { closeOrphanPipes } from "#dataplane/workers/shared/pipe-memory.ts";
import {
  ENCRYPTED,
  LAYER_CONTEXTS,
  PLAIN,
  QUIC,
  RECORDS,
  WIRE_NUMBERS,
  SEALED,
  TLS,
  VMESS,
  type WireCode,
} from "#dataplane/workers/shared/wire-spec.ts";
import { FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { float64At, int32At } from "#lib/at.ts";

/** The numbers are those of the wire's spec. */
export type Free = (kind: WireCode, numbers: Float64Array) => void;

/** Of the main thread's libraries; contexts of ciphers it may never have seen. */
export function makeFree(library: TlsLibrary): Free {
  const freeTls = (word: (at: number) => bigint): void => library.native?.ssl.free(word(0));
  const freeCiphers = (word: (at: number) => bigint): void => {
    freeGiven(word(0));
    freeGiven(word(1));
  };
  const frees: Readonly<Record<WireCode, (word: (at: number) => bigint) => void>> = {
    [PLAIN]: () => {},
    [QUIC]: () => {},
    [TLS]: freeTls,
    [SEALED]: freeCiphers,
    [RECORDS]: freeCiphers,
    [ENCRYPTED]: freeCiphers,
    [VMESS]: (word) => [0, 1, 2, 3].forEach((at) => freeGiven(word(at))),
  };
  return (kind, numbers) => frees[kind]((at) => BigInt(float64At(numbers, at)));
}

/**
 * Of the slots that the thread gave out those in which something is left. Foreign calls are made elsewhere: this walks over
 * thousands at the end of a process, and the runtime must not be compiling any when it lets go of them.
 */
function orphanedAccepts({ descriptors, owned, acceptedSlots: accepted }: RelayMemory): number[] {
  const found: number[] = [];
  for (let slot = FIRST_ACCEPTED_SLOT; slot < FIRST_ACCEPTED_SLOT + accepted; slot++) {
    const [near, far] = [slot * 2, slot * 2 + 1];
    const isOpen = int32At(descriptors, near) >= 0 || int32At(descriptors, far) >= 0;
    if (isOpen || owned[near] !== PLAIN || owned[far] !== PLAIN) found.push(slot);
  }
  return found;
}

/** What the wires of a slot hold besides their sockets lies outside the heap. */
export function freeOrphans({ owned, wireNumbers }: RelayMemory, slot: number, free: Free): void {
  for (let index = slot * 2; index < slot * 2 + 2; index++) {
    const kind = owned[index] as WireCode;
    const [start, end] = [index * WIRE_NUMBERS, (index + 1) * WIRE_NUMBERS];
    owned[index] = PLAIN;
    if (kind !== PLAIN) free(kind, wireNumbers.subarray(start, end));
    if (!hasContexts(wireNumbers, start + LAYER_CONTEXTS, end)) continue;
    const contexts = wireNumbers.subarray(start + LAYER_CONTEXTS, end);
    free(VMESS, contexts); // of whatever form
    contexts.fill(0);
  }
}

/** By hand: nearly all slots have none, and each connection ends here. */
function hasContexts(numbers: Float64Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (numbers[at] !== 0) return true;
  return false;
}

/** Whatever of an ended worker no connection is known for. Its resets come before. */
export function closeRest(
  table: RelayMemory,
  pipes: SharedArrayBuffer,
  { calls, free }: { calls: RelayCalls; free: Free },
): void {
  // In a handshake, or taken: then the socket continues by another descriptor, and must not be reset.
  for (const slot of orphanedAccepts(table)) {
    freeOrphans(table, slot, free);
    closeOrphans(table, slot, (fd) => calls.close(fd));
  }
  closeOrphanPipes(pipes, (fd) => calls.close(fd));
  if (table.epoll >= 0) calls.close(table.epoll);
}

export function closeOrphans({ descriptors }: RelayMemory, slot: number, close: (fd: number) => void): void {
  for (const index of [slot * 2, slot * 2 + 1]) {
    const fd = int32At(descriptors, index);
    descriptors[index] = -1;
    if (fd >= 0) close(fd);
  }
}
