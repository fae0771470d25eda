import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { FramedSession } from "./framed-session.ts";
import type { MuxEvents } from "./session.ts";
import { type Done, PatientStream } from "./stream.ts";
import {
  encodeHead,
  FIN,
  FIRST_ID,
  HEAD_BYTES,
  MAX_BODY_BYTES,
  NOP,
  PSH,
  SYN,
  VERSION,
} from "./smux-frame.ts";

/**
 * smux version 1. Streams have no windows: a reader that is too slow holds up the connection once the session's bound is
 * reached.
 */
export class SmuxSession extends FramedSession<PatientStream> {
  constructor(wire: Duplex, events: MuxEvents) {
    super(wire, { headBytes: HEAD_BYTES, firstId: FIRST_ID }, events);
  }

  open(): Duplex {
    const stream = this.enter(new PatientStream(this, this.takeId()));
    this.sendLater(encodeHead(SYN, stream.id, 0));
    return stream;
  }

  sendData(stream: PatientStream, data: Buffer, done: Done): void {
    if (data.length <= MAX_BODY_BYTES)
      return this.send(Buffer.concat([encodeHead(PSH, stream.id, data.length), data]), done);
    const frames: Buffer[] = [];
    for (let at = 0; at < data.length; at += MAX_BODY_BYTES) {
      const body = data.subarray(at, at + MAX_BODY_BYTES);
      frames.push(encodeHead(PSH, stream.id, body.length), body);
    }
    this.send(Buffer.concat(frames), done);
  }

  sendEnd(stream: PatientStream, done: Done): void {
    if (this.isClient && !stream.farEnded) stream.waitForSilence(() => this.#end(stream));
    else this.#end(stream);
    done();
  }

  #end(stream: PatientStream): void {
    if (this.table.get(stream.id) !== stream || stream.endSent) return;
    stream.endSent = true;
    this.send(encodeHead(FIN, stream.id, 0));
  }

  taken(): void {} // no windows

  protected left(stream: PatientStream): void {
    stream.stopWaiting();
    if (!stream.endSent) this.send(encodeHead(FIN, stream.id, 0));
  }

  protected onHead(head: Buffer): void {
    const version = byteAt(head, 0);
    const command = byteAt(head, 1);
    const length = head.readUInt16LE(2);
    const id = head.readUInt32LE(4);
    if (version !== VERSION) throw new ProtocolError(`smux version ${version}, expected 1`);
    if (command === PSH) return this.expectBody(this.table.get(id) ?? null, length);
    if (length > 0) throw new ProtocolError(`a smux command ${command} with ${length} bytes of data`);
    if (command === SYN) this.#accept(id);
    else if (command === FIN) this.table.get(id)?.farEnd();
    else if (command !== NOP) throw new ProtocolError(`smux command ${command}, expected 0 to 3`);
  }

  #accept(id: number): void {
    if (this.isClient) throw new ProtocolError("a smux server opened a stream");
    if (this.table.has(id)) return; // as other implementations do
    if (!this.acceptStream(new PatientStream(this, id))) this.send(encodeHead(FIN, id, 0));
  }

  protected keepAlive(): void {
    if (this.table.size > 0) this.send(encodeHead(NOP, 0, 0)); // peers do not answer it: it only keeps NAT entries alive
  }

  protected finalBytes(): Buffer {
    return Buffer.alloc(0); // the connection's end says it
  }
}
