import type { KeptClientStream } from "#dataplane/workers/wire/kept-client.ts";
import { SESSION_BYTES } from "#dataplane/workers/shared/slot-tag.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { REQUESTED } from "#dataplane/workers/shared/opcodes.ts";
import type { ClientBytes } from "./client-bytes.ts";

/** That of a stream, whatever its protocol. */
export interface StreamSession {
  readonly isDead: boolean;
}

/** The request of a stream in a session: the slot of that, and where the stream leads to. */
export class StreamBytes implements ClientBytes {
  readonly comesWhole = true;
  readonly stream: KeptClientStream;
  readonly #shown: Buffer;
  readonly #session: StreamSession;
  readonly #slot: number;

  /** `shown` is what `look` fills; the session has the slot `slot`. */
  constructor(shown: Buffer, session: StreamSession, slot: number, stream: KeptClientStream) {
    this.#shown = shown;
    this.#session = session;
    this.#slot = slot;
    this.stream = stream;
  }

  /** Once the session is dead its slot may be another client's: who has not asked by then asks no more. */
  look(): number {
    if (this.#session.isDead) return BROKEN;
    const { request } = this.stream;
    this.#shown.writeUInt32BE(this.#slot);
    this.#shown.set(request, SESSION_BYTES);
    return SESSION_BYTES + request.length;
  }

  consume(size: number): number {
    return this.stream.consume(size);
  }

  /** The stream says by itself what its dial came to. */
  say(bytes: Uint8Array): number {
    return bytes.length;
  }

  depart(): number {
    return REQUESTED; // its session goes nowhere
  }

  free(): void {}
}
