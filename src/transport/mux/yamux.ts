import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { FramedSession } from "./framed-session.ts";
import type { MuxEvents } from "./session.ts";
import { type Done, MuxStream } from "./stream.ts";
import * as yamux from "./yamux-frame.ts";

/** yamux: every stream has a window of its own, so a slow reader delays no other stream. */
export class YamuxSession extends FramedSession<YamuxStream> {
  #unanswered = 0;

  constructor(wire: Duplex, events: MuxEvents) {
    const { HEAD_BYTES, FIRST_ID, MAX_HELD_BYTES } = yamux;
    super(wire, { headBytes: HEAD_BYTES, firstId: FIRST_ID, mostHeldBytes: MAX_HELD_BYTES }, events);
  }

  open(): Duplex {
    const stream = this.enter(new YamuxStream(this, this.takeId()));
    this.sendLater(yamux.encodeOpen(stream.id));
    return stream;
  }

  sendData(stream: YamuxStream, data: Buffer, done: Done): void {
    stream.pending = { data, done };
    this.#flush(stream);
  }

  /** Sends as much as the peer's window allows; the remainder waits for a window update. */
  #flush(stream: YamuxStream): void {
    const { pending } = stream;
    if (pending === null) return;
    const size = Math.min(pending.data.length, stream.sendWindow, yamux.MAX_BODY_BYTES);
    if (size === 0 && pending.data.length > 0) return;
    stream.sendWindow -= size;
    const data = pending.data.subarray(0, size);
    const rest = pending.data.subarray(size);
    stream.pending = null;
    const next: Done = (error) => {
      if (error || rest.length === 0) return pending.done(error);
      stream.pending = { data: rest, done: pending.done };
      this.#flush(stream);
    };
    const frame = Buffer.concat([yamux.encodeHead(yamux.DATA, 0, stream.id, size), data]);
    this.sendFrames(stream, frame, next);
  }

  sendEnd(stream: YamuxStream, done: Done): void {
    this.send(yamux.encodeEnd(stream.id), done);
  }

  taken(stream: YamuxStream, bytes: number): void {
    const credit = stream.consumed(bytes);
    if (credit > 0 && !stream.farEnded) this.send(yamux.encodeCredit(stream.id, credit));
  }

  protected left(stream: YamuxStream, whole: boolean): void {
    stream.pending = null;
    if (!whole) this.send(yamux.encodeReset(stream.id));
  }

  protected onHead(head: Buffer): void {
    const version = byteAt(head, 0);
    const type = byteAt(head, 1);
    const flags = head.readUInt16BE(2);
    const id = head.readUInt32BE(4);
    const length = head.readUInt32BE(8);
    if (version !== yamux.VERSION) throw new ProtocolError(`yamux version ${version}, expected 0`);
    this.#unanswered = 0;
    if (type === yamux.DATA || type === yamux.WINDOW_UPDATE) this.#onStream(type, flags, id, length);
    else if (type === yamux.PING) this.#onPing(flags, length);
    else if (type === yamux.GO_AWAY) this.#onGoAway(length);
    else throw new ProtocolError(`yamux frame type ${type}, expected 0 to 3`);
  }

  #onStream(type: number, flags: number, id: number, length: number): void {
    if ((flags & yamux.SYN) !== 0) this.#accept(id);
    const stream = this.table.get(id) ?? null; // null: closed a moment ago, or refused
    if ((flags & yamux.RST) !== 0) stream?.destroy(new Error("the peer reset the stream"));
    const ends = (flags & yamux.FIN) !== 0;
    if (type === yamux.WINDOW_UPDATE) {
      if (stream !== null) this.#widen(stream, length);
      if (ends) stream?.farEnd();
      return;
    }
    stream?.spend(length); // throws
    this.expectBody(stream, length, ends);
  }

  #widen(stream: YamuxStream, credit: number): void {
    stream.sendWindow += credit;
    if (stream.sendWindow > yamux.MAX_WINDOW) throw new ProtocolError("a yamux window beyond 32 bits");
    this.#flush(stream);
  }

  #accept(id: number): void {
    if (this.isClient || id % 2 === 0 || this.table.has(id))
      throw new ProtocolError(`yamux stream ${id} cannot be opened`);
    const stream = new YamuxStream(this, id);
    if (this.acceptStream(stream)) this.send(yamux.encodeAccepted(id));
    else this.send(yamux.encodeReset(id));
  }

  #onPing(flags: number, value: number): void {
    if ((flags & yamux.SYN) !== 0) this.send(yamux.encodePingAnswer(value));
  }

  #onGoAway(code: number): void {
    if (code !== yamux.GO_AWAY_NORMAL) throw new ProtocolError(`the yamux peer goes away with code ${code}`);
    this.retire();
  }

  protected keepAlive(): void {
    if (this.table.size === 0) return;
    if (this.#unanswered >= yamux.MAX_UNANSWERED) throw new ProtocolError("the yamux peer no longer answers");
    this.#unanswered++;
    this.send(yamux.encodePing(this.#unanswered));
  }

  protected finalBytes(error: Error | null): Buffer {
    return yamux.encodeGoAway(error instanceof ProtocolError);
  }
}

class YamuxStream extends MuxStream {
  /** What the peer lets us send. */
  sendWindow = yamux.INITIAL_WINDOW;
  /** A write that waits for the window or the connection. */
  pending: { readonly data: Buffer; readonly done: Done } | null = null;
  /** Ours from its first frame on. */
  #receiveWindow = yamux.OUR_WINDOW;
  #credit = 0;

  /** The peer sends so many bytes. Throws `ProtocolError` where it may not. */
  spend(bytes: number): void {
    if (bytes > this.#receiveWindow) throw new ProtocolError("yamux data beyond the stream's window");
    this.#receiveWindow -= bytes;
  }

  /** Bytes to grant again now; small amounts are saved up. */
  consumed(bytes: number): number {
    this.#credit += bytes;
    if (this.#credit < yamux.OUR_WINDOW / 2) return 0;
    const credit = this.#credit;
    this.#credit = 0;
    this.#receiveWindow += credit;
    return credit;
  }
}
