import type { ClientWire } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { layersOf, type WireStart } from "#core/wire-state.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { RESET } from "#dataplane/workers/shared/opcodes.ts";
import { streamRequest } from "./seen-request.ts";
import { takeStream } from "./taken-stream.ts";
import { WorkerClient, type WorkerClientEnv } from "./worker-connection.ts";

const NO_BYTES = Buffer.alloc(0);

/** A stream in the session of a client, as the main thread sees it: it has no socket of its own. */
export class StreamClient extends WorkerClient {
  readonly #session: WorkerClient;

  constructor(session: WorkerClient, slot: number, request: Buffer, env: WorkerClientEnv) {
    super(session.thread, slot, env, streamRequest(session, request));
    this.#session = session;
  }

  /** Its worker says `_replyBytes`, as the session's protocol has it. */
  override dial(way: DialPlan, _replyBytes: Uint8Array, limited: boolean, wire?: ClientWire): void {
    if (this.isOver) return;
    if (this.#session.isOver) return this.reset(); // nothing is dialled for a user who was removed meanwhile
    super.dial(way, NO_BYTES, limited, wire);
  }

  /** It has no streams itself. */
  override openSession(): boolean {
    return false;
  }

  protected override overSocket(start: WireStart): WireStart {
    return { kind: "plain", numbers: [], unread: null, layers: layersOf(start) };
  }

  override destroy(): void {
    if (this.hasStream) super.destroy();
    else this.reset();
  }

  protected override takeSocket(): StreamSocket | null {
    this.writeHandshakeBytes();
    if (!this.#session.isOver) return takeStream(this.thread, this.slot, this.env.calls);
    this.thread.command(this.slot, RESET);
    return null;
  }

  override onEnded(): void {
    super.onEnded();
    // What it had to say may still lie between the threads, unless it was cut off.
    if (this.hasStream && this.thread.table.halfClosed[this.slot] === 0) abortStream(this.stream());
  }
}
