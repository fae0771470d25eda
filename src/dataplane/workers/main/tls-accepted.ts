import type { Duplex } from "node:stream";
import type { AcceptedConnection, OffloadedTls, Switched } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { both } from "./followers.ts";
import { PLAIN, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { switchedOf } from "#dataplane/workers/shared/accept-memory.ts";
import {
  HANDSHAKE_DONE,
  HANDSHAKE_FAILED,
  FAULT_NUMBER,
  HANDSHAKE_LATE,
  STAGE_NUMBER,
} from "#dataplane/workers/shared/tls-stage.ts";
import { float64At, int32At } from "#lib/at.ts";

/** What a worker has left of a client of a TLS listener. */
export interface HandshakeResult {
  /** -1: nothing. */
  readonly fd: number;
  /** 0: there is none. */
  readonly ssl: bigint;
  readonly isDone: boolean;
  readonly failure: string | null;
  /** As `AcceptedConnection` has it. */
  readonly switched: Switched | null;
}

/** From here on all of it is the caller's, and the slot is the thread's again. */
export function takeHandshake(thread: WorkerHandle, slot: number, tlsLibrary: TlsLibrary): HandshakeResult {
  const switched = switchedOf(int32At(thread.accepts.tags, slot));
  const { descriptors, owned, wireNumbers } = thread.table;
  const index = slot * 2;
  const word = (at: number): number => float64At(wireNumbers, index * WIRE_NUMBERS + at);
  const fd = int32At(descriptors, index);
  const stage = word(STAGE_NUMBER);
  const tlsAccepted = {
    fd,
    ssl: fd < 0 ? 0n : BigInt(word(0)),
    isDone: stage === HANDSHAKE_DONE,
    failure: failureOf(stage, word(FAULT_NUMBER), tlsLibrary),
    switched,
  };
  descriptors[index] = -1;
  owned[index] = PLAIN;
  thread.release(slot);
  return tlsAccepted;
}

function failureOf(stage: number, fault: number, tlsLibrary: TlsLibrary): string | null {
  if (stage === HANDSHAKE_LATE) return "no TLS handshake within 30 s";
  if (stage !== HANDSHAKE_FAILED) return null;
  return `TLS handshake: ${tlsLibrary.native?.ssl.reasonOf(fault) ?? `fault ${fault}`}`;
}

/** What a connection ends by that is never continued. */
export interface TlsAcceptedEnv {
  readonly calls: AcceptCalls;
  readonly tlsLibrary: TlsLibrary;
}

/** A client whose handshake a worker has done, begun, or given up. */
export class TlsAcceptedSocket implements AcceptedConnection, OffloadedTls {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly failure: string | null;
  readonly isDone: boolean;
  readonly original = null;
  readonly request = null;
  readonly worker = null;
  readonly tls = this;
  readonly switched: Switched | null;
  #onStream: ((stream: Duplex) => void) | null = null;
  readonly #env: TlsAcceptedEnv;
  /** Null: it was taken, or there was none. */
  #left: { readonly fd: number; readonly ssl: bigint } | null;

  constructor(
    { fd, ssl, isDone, failure, switched }: HandshakeResult,
    source: Endpoint,
    local: Endpoint,
    env: TlsAcceptedEnv,
  ) {
    this.source = source;
    this.local = local;
    this.failure = failure;
    this.isDone = isDone;
    this.switched = switched;
    this.#env = env;
    this.#left = fd < 0 ? null : { fd, ssl };
  }

  take(): { readonly fd: number; readonly ssl: bigint } {
    const left = this.#left;
    if (left === null) throw new Error("nothing is left of this client");
    this.#left = null;
    return left;
  }

  stream(): never {
    throw new Error("a TLS handshake is under way");
  }

  reply(): never {
    return this.stream();
  }

  follow(on: (stream: Duplex) => void): void {
    this.#onStream = both(this.#onStream, on);
  }

  continueBy(stream: Duplex): void {
    this.#onStream?.(stream);
  }

  reset(): void {
    this.destroy();
  }

  destroy(): void {
    if (this.#left === null) return;
    const { fd, ssl } = this.take();
    this.#env.tlsLibrary.native?.ssl.free(ssl);
    this.#env.calls.discard(fd, false);
  }
}
