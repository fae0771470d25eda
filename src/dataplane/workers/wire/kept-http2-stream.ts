import { REQUEST_BYTES } from "#dataplane/workers/shared/request-memory.ts";
import { SESSION_BYTES } from "#dataplane/workers/shared/slot-tag.ts";
import type { KeptClientStream } from "./kept-client.ts";
import { KeptOpenedStream } from "./kept-opened-stream.ts";

/** What a request slot has room for behind the number of the session. */
const MOST_SHOWN_BYTES = REQUEST_BYTES - SESSION_BYTES;

/** One that begins as a connection of its own would. */
export class KeptHttp2Stream extends KeptOpenedStream implements KeptClientStream {
  isNamed = false;

  /** What waits, as far as it is to be shown. */
  get request(): Uint8Array {
    return this.peek(MOST_SHOWN_BYTES);
  }

  consume(size: number): number {
    return this.skip(size);
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.hasLast) return;
    this.keep(bytes, from, to);
    if (this.isNamed || this.waitingBytes === 0) return this.wake();
    this.isNamed = true;
    if (!this.host.onStream(this)) this.drop();
  }

  awaitAnswer(): void {} // it says none
}
