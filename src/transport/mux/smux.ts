import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { FramedSession } from "./framed-session.ts";
import { MAX_HELD_BYTES, type MuxEvents } from "./session.ts";
import { type Done, PatientStream } from "./stream.ts";
import * as smux from "./smux-frame.ts";

/**
 * smux version 1. Streams have no windows: a reader that is too slow holds up the connection once the session's bound is
 * reached.
 */
export class SmuxSession extends FramedSession<PatientStream> {
  constructor(wire: Duplex, events: MuxEvents) {
    const { HEAD_BYTES, FIRST_ID } = smux;
    super(wire, { headBytes: HEAD_BYTES, firstId: FIRST_ID, mostHeldBytes: MAX_HELD_BYTES }, events);
  }

  open(): Duplex {
    const stream = this.enter(new PatientStream(this, this.takeId()));
    this.sendLater(smux.encodeOpen(stream.id));
    return stream;
  }

  sendData(stream: PatientStream, data: Buffer, done: Done): void {
    if (!this.isClient && stream.hasLeft(smux.GRACE_MS)) {
      stream.destroy();
      return done();
    }
    const frames: Buffer[] = [];
    for (let at = 0; at < data.length; at += smux.MAX_BODY_BYTES) {
      const body = data.subarray(at, at + smux.MAX_BODY_BYTES);
      frames.push(smux.encodeHead(smux.PSH, stream.id, body.length), body);
    }
    this.sendFrames(stream, Buffer.concat(frames), done);
  }

  sendEnd(stream: PatientStream, done: Done): void {
    if (this.isClient && !stream.farEnded) stream.waitForSilence(() => this.#end(stream));
    else this.#end(stream);
    done();
  }

  #end(stream: PatientStream): void {
    if (this.table.get(stream.id) !== stream || stream.endSent) return;
    stream.endSent = true;
    const isHalf = this.isClient && !stream.farEnded;
    this.send(isHalf ? smux.encodeHalfEnd(stream.id) : smux.encodeEnd(stream.id));
  }

  taken(): void {} // no windows

  protected left(stream: PatientStream): void {
    stream.stopWaiting();
    if (!stream.endSent) this.send(smux.encodeEnd(stream.id));
  }

  protected onHead(head: Buffer): void {
    const version = byteAt(head, 0);
    const command = byteAt(head, 1);
    const length = head.readUInt16LE(2);
    const id = head.readUInt32LE(4);
    if (version !== smux.VERSION) throw new ProtocolError(`smux version ${version}, expected 1`);
    if (command === smux.PSH) return this.expectBody(this.table.get(id) ?? null, length);
    if (length > 0) throw new ProtocolError(`a smux command ${command} with ${length} bytes of data`);
    if (command === smux.SYN) this.#accept(id);
    else if (command === smux.FIN) this.table.get(id)?.farEnd();
    else if (command === smux.NOP) this.table.get(id)?.keepReading();
    else throw new ProtocolError(`smux command ${command}, expected 0 to 3`);
  }

  #accept(id: number): void {
    if (this.isClient) throw new ProtocolError("a smux server opened a stream");
    if (this.table.has(id)) return; // as other implementations do
    if (!this.acceptStream(new PatientStream(this, id))) this.send(smux.encodeEnd(id));
  }

  protected keepAlive(): void {
    if (this.table.size > 0) this.send(smux.encodeKeepAlive());
  }

  protected finalBytes(): Buffer {
    return Buffer.alloc(0); // the connection's end says it
  }
}
