import { REQUEST_BYTES } from "#dataplane/workers/shared/request-memory.ts";
import { SESSION_BYTES } from "#dataplane/workers/shared/slot-tag.ts";
import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import type { KeptClientStream, KeptSessionHost } from "./kept-client.ts";
import { KeptOpenedStream } from "./kept-opened-stream.ts";
import type { MuxSession } from "./mux-session.ts";

/** What a request slot has room for behind the number of the session. */
const MOST_SHOWN_BYTES = REQUEST_BYTES - SESSION_BYTES;

/** One that begins as a connection of its own would. */
export class KeptHttp2Stream extends KeptOpenedStream implements KeptClientStream {
  isNamed = false;
  /** While it has said nothing: anybody may have opened it. */
  readonly #wait: PendingEntry;

  constructor(session: MuxSession, host: KeptSessionHost, id: number) {
    super(session, host, id);
    this.#wait = host.awaits(() => this.drop());
  }

  /** What waits, as far as it is to be shown. */
  get request(): Uint8Array {
    return this.peek(MOST_SHOWN_BYTES);
  }

  /** What was shown has opened the stream, so its client is known. */
  consume(size: number): number {
    if (size > 0) this.session.prove();
    return this.skip(size);
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.hasLast) return;
    this.keep(bytes, from, to);
    if (this.isNamed) this.wake();
    else if (this.waitingBytes >= MOST_SHOWN_BYTES) this.#show();
  }

  /** What is shown in pieces the event loop has to read: a frame that was read in two is no piece. */
  onWhole(): void {
    if (!this.isNamed && this.waitingBytes > 0) this.#show();
  }

  #show(): void {
    this.isNamed = true;
    this.host.hears(this.#wait);
    if (!this.host.onStream(this)) this.drop();
  }

  awaitAnswer(): void {} // it says none

  override drop(): void {
    super.drop();
    this.host.hears(this.#wait);
  }
}
