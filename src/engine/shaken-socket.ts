import type { Duplex } from "node:stream";
import type { ShakenClient } from "#core/held.ts";
import type { Endpoint } from "#core/session.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { nativeTls } from "#platform/tls.ts";
import { freeOrphan } from "./orphans.ts";
import { PLAIN, PORT_WORDS, TLS } from "./port.ts";
import type { RelayThread } from "./relay-thread.ts";
import { DONE, FAILED, FAULT_WORD, LATE, STAGE_WORD } from "./shaking.ts";

/** What a relay thread has left of a client of a TLS listener. */
export interface Shaken {
  /** -1: nothing. */
  readonly fd: number;
  /** 0: there is none. */
  readonly ssl: bigint;
  readonly isDone: boolean;
  readonly failure: string | null;
}

/** From here on all of it is the caller's, and the slot is the thread's again. */
export function takeShaken(thread: RelayThread, slot: number): Shaken {
  const { descriptors, owned, portWords } = thread.table;
  const place = slot * 2;
  const word = (at: number): number => portWords[place * PORT_WORDS + at] as number;
  const fd = descriptors[place] as number;
  const stage = word(STAGE_WORD);
  const shaken = {
    fd,
    ssl: fd < 0 ? 0n : BigInt(word(0)),
    isDone: stage === DONE,
    failure: failureOf(stage, word(FAULT_WORD)),
  };
  descriptors[place] = -1;
  owned[place] = PLAIN;
  thread.release(slot);
  return shaken;
}

function failureOf(stage: number, fault: number): string | null {
  if (stage === LATE) return "no TLS handshake within 30 s";
  if (stage !== FAILED) return null;
  return `TLS handshake: ${nativeTls()?.ssl.reasonOf(fault) ?? `fault ${fault}`}`;
}

/** A client whose handshake a relay thread has done, begun, or given up. */
export class ShakenSocket implements ShakenClient {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly failure: string | null;
  readonly isDone: boolean;
  onStream: ((stream: Duplex) => void) | null = null;
  readonly #calls: AcceptCalls;
  /** Null: somebody has it, or there was nothing. */
  #left: { readonly fd: number; readonly ssl: bigint } | null;

  constructor({ fd, ssl, isDone, failure }: Shaken, source: Endpoint, local: Endpoint, calls: AcceptCalls) {
    this.source = source;
    this.local = local;
    this.failure = failure;
    this.isDone = isDone;
    this.#calls = calls;
    this.#left = fd < 0 ? null : { fd, ssl };
  }

  take(): { readonly fd: number; readonly ssl: bigint } {
    const left = this.#left;
    if (left === null) throw new Error("nothing is left of this client");
    this.#left = null;
    return left;
  }

  destroy(): void {
    if (this.#left === null) return;
    const { fd, ssl } = this.take();
    freeOrphan(TLS, Float64Array.of(Number(ssl)));
    this.#calls.discard(fd, false);
  }
}
