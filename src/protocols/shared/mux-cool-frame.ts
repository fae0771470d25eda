/**
 * mux.cool frames. M(2, big endian, 4–512) SESSION(2) STATUS(1) OPTION(1), in New: NETWORK(1) PORT(2) ATYP(1) ADDR
 * [GLOBALID(8)], in Keep on UDP perhaps the same without the id; then, where option bit 0 is set, LEN(2) DATA.
 */
import { ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { decodeAddress, encodeAddress } from "./port-first-address.ts";
import { byteAt } from "#lib/at.ts";

export const STATUS_NEW = 1;
export const STATUS_KEEP = 2;
export const STATUS_END = 3;
export const STATUS_KEEP_ALIVE = 4;
export const NETWORK_TCP = 1;
export const NETWORK_UDP = 2;
const OPTION_DATA = 1;
const OPTION_ERROR = 2;
const MAX_META_BYTES = 512;
/** Peers read a chunk into a buffer of this size. */
export const MAX_CHUNK_BYTES = 8192;

export interface MuxFrame {
  readonly session: number;
  readonly status: number;
  /** 0 where the frame names none. */
  readonly network: number;
  readonly destination: Destination | null;
  /** Null: the frame has no data part. */
  readonly data: Buffer | null;
  readonly failed: boolean;
}

export interface OutgoingFrame {
  readonly session: number;
  readonly status: number;
  readonly network?: number;
  readonly destination?: Destination;
  readonly globalId?: Uint8Array;
  readonly data?: Uint8Array;
  readonly failed?: boolean;
}

/** Throws where the data does not fit into one frame, or the name into its field. */
export function encodeFrame(frame: OutgoingFrame): Buffer {
  const { session, status, network, destination, globalId, data, failed = false } = frame;
  if (data !== undefined && data.length > 0xffff) throw new RangeError("data of more than 65535 bytes");
  const address =
    destination === undefined
      ? []
      : [
          Buffer.from([network ?? NETWORK_UDP]),
          encodeAddress(destination, status === STATUS_KEEP ? "ip" : "host"),
        ];
  const meta = [...address, ...(globalId === undefined ? [] : [globalId])];
  const metaBytes = 4 + meta.reduce((sum, part) => sum + part.length, 0);
  const head = Buffer.allocUnsafe(6);
  head.writeUInt16BE(metaBytes, 0);
  head.writeUInt16BE(session, 2);
  head[4] = status;
  head[5] = (data === undefined ? 0 : OPTION_DATA) | (failed ? OPTION_ERROR : 0);
  if (data === undefined) return Buffer.concat([head, ...meta]);
  const length = Buffer.allocUnsafe(2);
  length.writeUInt16BE(data.length);
  return Buffer.concat([head, ...meta, length, data]);
}

/** Takes the next whole frame; null: more bytes are needed. Throws `ProtocolError`, which ends the whole connection. */
export function takeFrame(arrived: ByteQueue): MuxFrame | null {
  const start = arrived.peek(2);
  if (start === null) return null;
  const metaBytes = start.readUInt16BE();
  if (metaBytes < 4 || metaBytes > MAX_META_BYTES)
    throw new ProtocolError(`mux metadata of ${metaBytes} bytes, expected 4 to ${MAX_META_BYTES}`);
  const meta = arrived.peek(2 + metaBytes);
  if (meta === null) return null;
  const hasData = (byteAt(meta, 5) & OPTION_DATA) !== 0;
  let dataBytes = 0;
  if (hasData) {
    const whole = arrived.peek(2 + metaBytes + 2);
    if (whole === null) return null;
    dataBytes = whole.readUInt16BE(2 + metaBytes);
    if (arrived.length < 2 + metaBytes + 2 + dataBytes) return null;
  }
  const parsed = parseMeta(meta.subarray(2, 2 + metaBytes));
  arrived.skip(2 + metaBytes + (hasData ? 2 : 0));
  return { ...parsed, data: hasData ? arrived.take(dataBytes) : null };
}

function parseMeta(meta: Buffer): Omit<MuxFrame, "data"> {
  const status = byteAt(meta, 2);
  if (status < STATUS_NEW || status > STATUS_KEEP_ALIVE) throw new ProtocolError(`mux status ${status}`);
  const failed = (byteAt(meta, 3) & OPTION_ERROR) !== 0;
  const session = meta.readUInt16BE(0);
  const network = meta[4] ?? 0;
  const named = status === STATUS_NEW || (status === STATUS_KEEP && network === NETWORK_UDP);
  if (!named) return { session, status, network: 0, destination: null, failed };
  if (network !== NETWORK_TCP && network !== NETWORK_UDP) throw new ProtocolError(`mux network ${network}`);
  const address = decodeAddress(meta, 5);
  if (address === null) throw new ProtocolError("a mux address beyond its metadata");
  return { session, status, network, destination: address.destination, failed };
}
