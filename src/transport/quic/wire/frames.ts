/** Frames (RFC 9000 §19, RFC 9221 §4): their types, and a reader that hands each to its receiver. */
import { FRAME_ENCODING_ERROR, PROTOCOL_VIOLATION, QuicFault } from "#transport/quic/fault.ts";
import { MAX_CID_BYTES } from "./header.ts";
import type { WireReader } from "./reader.ts";
import { RESET_TOKEN_BYTES } from "./transport-parameters.ts";

export const FRAME = {
  padding: 0x00,
  ping: 0x01,
  ack: 0x02,
  ackEcn: 0x03,
  resetStream: 0x04,
  stopSending: 0x05,
  crypto: 0x06,
  newToken: 0x07,
  stream: 0x08,
  maxData: 0x10,
  maxStreamData: 0x11,
  maxStreamsBidi: 0x12,
  maxStreamsUni: 0x13,
  dataBlocked: 0x14,
  streamDataBlocked: 0x15,
  streamsBlockedBidi: 0x16,
  streamsBlockedUni: 0x17,
  newConnectionId: 0x18,
  retireConnectionId: 0x19,
  pathChallenge: 0x1a,
  pathResponse: 0x1b,
  closeTransport: 0x1c,
  closeApplication: 0x1d,
  handshakeDone: 0x1e,
  datagram: 0x30,
  datagramLength: 0x31,
} as const;

/** Bits of the types of STREAM. */
export const STREAM_FIN = 1;
export const STREAM_LENGTH = 2;
export const STREAM_OFFSET = 4;
const LAST_STREAM = 0x0f;

/** Views are lent until the call returns. */
export interface FrameReceiver {
  /** Stands in front of the number of the largest; must leave the reader behind the ranges, or the counts of ECN. */
  onAck(reader: WireReader, hasEcn: boolean): void;
  onCrypto(offset: number, bytes: Uint8Array): void;
  onStream(id: number, offset: number, bytes: Uint8Array, isLast: boolean): void;
  onResetStream(id: number, code: number, finalSize: number): void;
  onStopSending(id: number, code: number): void;
  onMaxData(limit: number): void;
  onMaxStreamData(id: number, limit: number): void;
  onMaxStreams(isBidi: boolean, limit: number): void;
  onNewToken(token: Uint8Array): void;
  onNewConnectionId(id: NewConnectionId): void;
  onRetireConnectionId(sequence: number): void;
  onPathChallenge(data: Uint8Array): void;
  onPathResponse(data: Uint8Array): void;
  onClose(isApplication: boolean, code: number, reason: Uint8Array): void;
  onHandshakeDone(): void;
  onDatagram(payload: Uint8Array): void;
}

export interface NewConnectionId {
  readonly sequence: number;
  readonly retirePriorTo: number;
  readonly id: Uint8Array;
  readonly resetToken: Uint8Array;
}

/** What a packet's frames were. */
export interface FramesRead {
  readonly isEliciting: boolean;
  /** Only what a path is probed with (RFC 9000 §9.1). */
  readonly isProbing: boolean;
  /** It brought bytes of the application, whose answer may take the acknowledgement along. */
  readonly isAnswerable: boolean;
}

/** Those that Initial and Handshake packets may carry. */
export const HANDSHAKE_FRAMES: ReadonlySet<number> = new Set([
  FRAME.padding,
  FRAME.ping,
  FRAME.ack,
  FRAME.ackEcn,
  FRAME.crypto,
  FRAME.closeTransport,
]);

/** Those that packets of 0-RTT may carry (RFC 9000 §12.4, RFC 9001 §8.3). */
export const EARLY_FRAMES: ReadonlySet<number> = new Set([
  FRAME.padding,
  FRAME.ping,
  FRAME.resetStream,
  FRAME.stopSending,
  FRAME.maxData,
  FRAME.maxStreamData,
  FRAME.maxStreamsBidi,
  FRAME.maxStreamsUni,
  FRAME.dataBlocked,
  FRAME.streamDataBlocked,
  FRAME.streamsBlockedBidi,
  FRAME.streamsBlockedUni,
  FRAME.newConnectionId,
  FRAME.pathChallenge,
  FRAME.closeTransport,
  FRAME.closeApplication,
  FRAME.datagram,
  FRAME.datagramLength,
  ...Array.from({ length: LAST_STREAM - FRAME.stream + 1 }, (_each, at) => FRAME.stream + at),
]);

const ANSWERABLE: FramesRead = { isEliciting: true, isProbing: false, isAnswerable: true };
const ELICITING: FramesRead = { isEliciting: true, isProbing: false, isAnswerable: false };
const SILENT: FramesRead = { isEliciting: false, isProbing: false, isAnswerable: false };
const PROBING: FramesRead = { isEliciting: true, isProbing: true, isAnswerable: false };

/** All frames of one packet; `allowed`: those that it may carry; null: any. Throws `QuicFault`. */
export function readFrames(
  reader: WireReader,
  allowed: ReadonlySet<number> | null,
  to: FrameReceiver,
): FramesRead {
  if (reader.left === 0) throw new QuicFault(PROTOCOL_VIOLATION, "a packet without frames");
  let eliciting = false;
  let probing = false;
  let others = false;
  let answerable = false;
  while (reader.left > 0) {
    const type = reader.byte();
    if (type === FRAME.padding) continue;
    if (allowed !== null && !allowed.has(type))
      throw new QuicFault(PROTOCOL_VIOLATION, `frame ${type} before the handshake is done`);
    if (type >= FRAME.stream && type <= LAST_STREAM) readStream(reader, type, to);
    else readFrame(reader, type, to);
    if (isOfApplication(type)) answerable = true;
    if (type !== FRAME.ack && type !== FRAME.ackEcn && type !== FRAME.closeTransport) eliciting = true;
    if (type === FRAME.pathChallenge || type === FRAME.pathResponse || type === FRAME.newConnectionId)
      probing = true;
    else others = true;
  }
  if (answerable) return ANSWERABLE;
  return eliciting ? (probing && !others ? PROBING : ELICITING) : SILENT;
}

function isOfApplication(type: number): boolean {
  return (
    (type >= FRAME.stream && type <= LAST_STREAM) || type === FRAME.datagram || type === FRAME.datagramLength
  );
}

function readStream(reader: WireReader, type: number, to: FrameReceiver): void {
  const id = reader.varint();
  const offset = (type & STREAM_OFFSET) === 0 ? 0 : reader.varint();
  const size = (type & STREAM_LENGTH) === 0 ? reader.left : reader.varint();
  if (offset + size > Number.MAX_SAFE_INTEGER) throw encoding("a stream beyond 2^53");
  to.onStream(id, offset, reader.take(size), (type & STREAM_FIN) !== 0);
}

function readFrame(reader: WireReader, type: number, to: FrameReceiver): void {
  switch (type) {
    case FRAME.ping:
      return;
    case FRAME.ack:
    case FRAME.ackEcn:
      return to.onAck(reader, type === FRAME.ackEcn);
    case FRAME.crypto: {
      const offset = reader.varint();
      return to.onCrypto(offset, reader.take(reader.varint()));
    }
    case FRAME.datagram:
      return to.onDatagram(reader.take(reader.left));
    case FRAME.datagramLength:
      return to.onDatagram(reader.take(reader.varint()));
    case FRAME.handshakeDone:
      return to.onHandshakeDone();
    case FRAME.closeTransport:
    case FRAME.closeApplication:
      return readClose(reader, type, to);
    default:
      return type <= FRAME.streamsBlockedUni ? readLimit(reader, type, to) : readPath(reader, type, to);
  }
}

function readLimit(reader: WireReader, type: number, to: FrameReceiver): void {
  switch (type) {
    case FRAME.resetStream:
      return to.onResetStream(reader.varint(), reader.varint(), reader.varint());
    case FRAME.stopSending:
      return to.onStopSending(reader.varint(), reader.varint());
    case FRAME.newToken: {
      const token = reader.take(reader.varint());
      if (token.length === 0) throw encoding("an empty token");
      return to.onNewToken(token);
    }
    case FRAME.maxData:
      return to.onMaxData(reader.varint());
    case FRAME.maxStreamData:
      return to.onMaxStreamData(reader.varint(), reader.varint());
    case FRAME.maxStreamsBidi:
    case FRAME.maxStreamsUni:
      return to.onMaxStreams(type === FRAME.maxStreamsBidi, reader.varint());
    case FRAME.dataBlocked:
      return void reader.varint();
    case FRAME.streamDataBlocked:
      reader.varint();
      return void reader.varint();
    default:
      reader.varint(); // STREAMS_BLOCKED of either kind
  }
}

function readPath(reader: WireReader, type: number, to: FrameReceiver): void {
  switch (type) {
    case FRAME.newConnectionId:
      return to.onNewConnectionId(readConnectionId(reader));
    case FRAME.retireConnectionId:
      return to.onRetireConnectionId(reader.varint());
    case FRAME.pathChallenge:
      return to.onPathChallenge(reader.take(8));
    case FRAME.pathResponse:
      return to.onPathResponse(reader.take(8));
    default:
      throw encoding(`an unknown frame, ${type}`);
  }
}

function readConnectionId(reader: WireReader): NewConnectionId {
  const sequence = reader.varint();
  const retirePriorTo = reader.varint();
  const size = reader.byte();
  if (size === 0 || size > MAX_CID_BYTES || retirePriorTo > sequence)
    throw encoding("a connection id that cannot be");
  return { sequence, retirePriorTo, id: reader.take(size), resetToken: reader.take(RESET_TOKEN_BYTES) };
}

function readClose(reader: WireReader, type: number, to: FrameReceiver): void {
  const code = reader.varint();
  if (type === FRAME.closeTransport) reader.varint(); // the type of the frame that was at fault
  to.onClose(type === FRAME.closeApplication, code, reader.take(reader.varint()));
}

function encoding(why: string): QuicFault {
  return new QuicFault(FRAME_ENCODING_ERROR, why);
}
