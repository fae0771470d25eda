/** Gives the frames of authentic packets to the parts of the connection that they are for. */
import type { OwnIds, PeerIds } from "./connection-ids.ts";
import type { ControlQueue } from "./control-queue.ts";
import { PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import { APPLICATION_SPACE, type PacketSpace } from "./recovery/packet-space.ts";
import type { Recovery } from "./recovery/recovery.ts";
import type { StreamSet } from "./streams/stream-set.ts";
import { EARLY_FRAMES, type FrameReceiver, type FramesRead, HANDSHAKE_FRAMES } from "./wire/frames.ts";
import { type NewConnectionId, readFrames } from "./wire/frames.ts";
import type { WireReader } from "./wire/reader.ts";

export interface FrameDispatchOptions {
  readonly isServer: boolean;
  readonly recovery: Recovery;
  readonly streams: StreamSet;
  readonly controls: ControlQueue;
  readonly peerIds: PeerIds;
  readonly ownIds: OwnIds;
  onCrypto(space: PacketSpace, offset: number, bytes: Uint8Array): void;
  onAcked(space: PacketSpace): void;
  onHandshakeDone(): void;
  onPathChallenge(data: Uint8Array): void;
  onPathResponse(data: Uint8Array): void;
  onDatagram(payload: Uint8Array): void;
  onClose(isApplication: boolean, code: number, reason: string): void;
}

const REASON_CHARACTERS = 200;
const NO_SPACE = null;

export class FrameDispatch implements FrameReceiver {
  readonly #options: FrameDispatchOptions;
  #space: PacketSpace | null = NO_SPACE;
  #nowMs = 0;

  constructor(options: FrameDispatchOptions) {
    this.#options = options;
  }

  /** All frames of a packet; `isEarly`: of 0-RTT. Throws `QuicFault`. */
  read(space: PacketSpace, frames: WireReader, nowMs: number, isEarly = false): FramesRead {
    this.#space = space;
    this.#nowMs = nowMs;
    const isHandshake = space.id !== APPLICATION_SPACE;
    return readFrames(frames, isHandshake ? HANDSHAKE_FRAMES : isEarly ? EARLY_FRAMES : null, this);
  }

  onAck(reader: WireReader, hasEcn: boolean): void {
    const { recovery } = this.#options;
    const space = this.#space;
    if (space !== null && recovery.onAck(space, reader, this.#nowMs, hasEcn)) this.#options.onAcked(space);
  }

  onCrypto(offset: number, bytes: Uint8Array): void {
    if (this.#space !== null) this.#options.onCrypto(this.#space, offset, bytes);
  }

  onStream(id: number, offset: number, bytes: Uint8Array, isLast: boolean): void {
    this.#options.streams.onStream(id, offset, bytes, isLast);
  }

  onResetStream(id: number, _code: number, finalSize: number): void {
    this.#options.streams.onResetStream(id, finalSize);
  }

  onStopSending(id: number, code: number): void {
    this.#options.streams.onStopSending(id, code);
  }

  onMaxData(limit: number): void {
    this.#options.streams.onMaxData(limit);
  }

  onMaxStreamData(id: number, limit: number): void {
    this.#options.streams.onMaxStreamData(id, limit);
  }

  onMaxStreams(isBidi: boolean, limit: number): void {
    this.#options.streams.onMaxStreams(isBidi, limit);
  }

  /** For later connections, which begin without one. */
  onNewToken(): void {
    if (this.#options.isServer) throw new QuicFault(PROTOCOL_VIOLATION, "a client gives no tokens");
  }

  onNewConnectionId(id: NewConnectionId): void {
    this.#options.peerIds.add(id);
  }

  onRetireConnectionId(sequence: number): void {
    this.#options.ownIds.retire(sequence);
  }

  onPathChallenge(data: Uint8Array): void {
    this.#options.onPathChallenge(data);
  }

  onPathResponse(data: Uint8Array): void {
    this.#options.onPathResponse(data);
  }

  onClose(isApplication: boolean, code: number, reason: Uint8Array): void {
    const text = Buffer.from(reason).toString("utf8").slice(0, REASON_CHARACTERS);
    this.#options.onClose(isApplication, code, text.replaceAll(/[^\x20-\x7e]/g, "?"));
  }

  onHandshakeDone(): void {
    if (this.#options.isServer)
      throw new QuicFault(PROTOCOL_VIOLATION, "a client says that the handshake is done");
    this.#options.onHandshakeDone();
  }

  onDatagram(payload: Uint8Array): void {
    this.#options.onDatagram(payload);
  }
}
