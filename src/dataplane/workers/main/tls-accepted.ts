import type { OffloadedTls, Switched } from "#core/accepted.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { type ConnectionEnds, LeftConnection } from "./left-connection.ts";
import { PLAIN, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { switchedOf } from "#dataplane/workers/shared/slot-tag.ts";
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
export class TlsAcceptedSocket extends LeftConnection implements OffloadedTls {
  readonly failure: string | null;
  readonly isDone: boolean;
  readonly tls = this;
  readonly #env: TlsAcceptedEnv;
  /** Null: it was taken, or there was none. */
  #left: { readonly fd: number; readonly ssl: bigint } | null;

  constructor(
    { fd, ssl, isDone, failure, switched }: HandshakeResult,
    ends: ConnectionEnds,
    env: TlsAcceptedEnv,
  ) {
    super(ends, switched);
    this.failure = failure;
    this.isDone = isDone;
    this.#env = env;
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
    this.#env.tlsLibrary.native?.ssl.free(ssl);
    this.#env.calls.discard(fd, false);
  }
}
