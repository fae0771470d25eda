/** The frames of one packet: chosen among all that is to be said, and noted for when the packet is acknowledged or lost. */
import type { ControlQueue } from "./control-queue.ts";
import type { DatagramQueue } from "./datagram-queue.ts";
import type { PathMtu } from "./path-mtu.ts";
import { APPLICATION_SPACE, type PacketSpace } from "./recovery/packet-space.ts";
import type { SentItem, SentPacket } from "./recovery/sent-packets.ts";
import type { StreamSet } from "./streams/stream-set.ts";
import { FRAME } from "./wire/frames.ts";
import type { WireWriter } from "./wire/writer.ts";

/** A frame with less room is not begun. */
const LEAST_ROOM = 40;

export interface FrameSources {
  readonly controls: ControlQueue;
  readonly datagrams: DatagramQueue;
  readonly streams: StreamSet;
  readonly mtu: PathMtu;
}

/** What a packet carries; the same object each time. */
class Carried implements SentPacket {
  bytes = 0;
  isEliciting = false;
  isMarked = false;
  stream = -1;
  offset = 0;
  length = 0;
  isLast = false;
  items: SentItem[] | null = null;

  clear(): void {
    this.stream = -1;
    this.length = 0;
    this.isLast = this.isEliciting = false;
    this.items = null;
  }

  add(item: SentItem): void {
    this.isEliciting = true;
    if (this.items === null) this.items = [item];
    else this.items.push(item);
  }
}

export class PacketFrames {
  readonly #sources: FrameSources;
  /** Of the packet that was written last; the owner says how many bytes it has. */
  readonly carried = new Carried();
  /** A PING goes with the next packet of the application. */
  wantsPing = false;

  constructor(sources: FrameSources) {
    this.#sources = sources;
  }

  /** Is there anything to send that is to be acknowledged? */
  has(space: PacketSpace): boolean {
    if (space.crypto.hasData) return true;
    if (space.id !== APPLICATION_SPACE) return false;
    const { controls, datagrams, streams, mtu } = this.#sources;
    return (
      controls.hasFrames || datagrams.hasData || this.wantsPing || mtu.wantsProbe || streams.next() !== null
    );
  }

  /** From where the writer stands to `end` at most. `mayElicit` false: nothing that is to be acknowledged. */
  write(out: WireWriter, end: number, space: PacketSpace, mayElicit: boolean, nowMs: number): void {
    const { carried } = this;
    const from = out.at;
    carried.clear();
    if (space.received.isWanted) space.received.write(out, end - out.at, nowMs);
    if (!mayElicit) return;
    while (space.crypto.hasData && end - out.at >= LEAST_ROOM) {
      const item = space.crypto.writeFrame(out, end - out.at);
      if (item === null) break;
      carried.add(item);
    }
    if (space.id === APPLICATION_SPACE) this.#writeApplication(out, end, from);
    if (!carried.isEliciting && (space.probes > 0 || this.wantsPing)) {
      out.byte(FRAME.ping);
      carried.isEliciting = true;
    }
    if (!carried.isEliciting) return;
    if (space.probes > 0) space.probes--;
    if (space.id === APPLICATION_SPACE) this.wantsPing = false;
  }

  /** In place of them, in a packet that ends at `end`: does the way carry one of this size? */
  writeMtuProbe(out: WireWriter, end: number, item: SentItem): void {
    this.carried.clear();
    out.byte(FRAME.ping);
    out.zeros(end - out.at);
    this.carried.add(item);
  }

  #writeApplication(out: WireWriter, end: number, from: number): void {
    const { controls, datagrams } = this.#sources;
    while (controls.hasFrames && end - out.at >= LEAST_ROOM) {
      const item = controls.writeFrame(out, end - out.at);
      if (item === null) break;
      this.carried.add(item);
    }
    while (datagrams.hasData && datagrams.writeFrame(out, end - out.at, out.at === from))
      this.carried.isEliciting = true;
    while (end - out.at >= LEAST_ROOM && this.#writeStream(out, end - out.at));
  }

  #writeStream(out: WireWriter, room: number): boolean {
    const { streams } = this.#sources;
    const { carried } = this;
    const stream = streams.next();
    const piece = stream?.send?.writeFrame(out, room, streams.credit) ?? null;
    if (stream === null || piece === null) return false;
    streams.onSent(piece.freshBytes);
    const { offset, length, isLast } = piece;
    if (carried.stream >= 0) {
      carried.add({
        onAcked: () => streams.onAcked(stream.id, offset, length, isLast),
        onLost: () => streams.onLost(stream.id, offset, length, isLast),
      });
      return true;
    }
    carried.stream = stream.id;
    carried.offset = offset;
    carried.length = length;
    carried.isLast = isLast;
    carried.isEliciting = true;
    return true;
  }
}
