/** Makes Initial packets of a QUIC client, as RFC 9001 §5 says. */
import { createCipheriv } from "node:crypto";
import { clientKeys, headerMask, QUIC_VERSIONS } from "#router/sniff/quic-keys.ts";
import type { QuicVersion } from "#router/sniff/quic-keys.ts";

export const QUIC_V1 = QUIC_VERSIONS[0] as QuicVersion;
export const QUIC_V2 = QUIC_VERSIONS[1] as QuicVersion;

export interface InitialOptions {
  readonly version?: QuicVersion;
  readonly connectionId?: Buffer;
  readonly number?: number;
  readonly token?: Buffer;
}

const two = (value: number): Buffer => Buffer.from([0x40 | (value >> 8), value & 0xff]);

/** CRYPTO(6) OFFSET(i) LENGTH(i) DATA */
export function cryptoFrame(offset: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([6]), two(offset), two(data.length), data]);
}

export function initialPacket(frames: Buffer, options: InitialOptions = {}): Buffer {
  const { version = QUIC_V1, connectionId = Buffer.from("8394c8f03e515708", "hex"), number = 0 } = options;
  const { token = Buffer.alloc(0) } = options;
  const keys = clientKeys(version, connectionId);
  const head = Buffer.alloc(6);
  head[0] = 0xc0 | (version.initialType << 4) | 1; // a packet number of two bytes
  head.writeUInt32BE(version.number, 1);
  head[5] = connectionId.length;
  const packetNumber = Buffer.from([number >> 8, number & 0xff]);
  const length = two(2 + frames.length + 16);
  const header = Buffer.concat([
    head,
    connectionId,
    Buffer.from([0]),
    two(token.length),
    token,
    length,
    packetNumber,
  ]);
  const nonce = Buffer.from(keys.iv);
  nonce.writeUInt16BE(nonce.readUInt16BE(10) ^ number, 10);
  const cipher = createCipheriv("aes-128-gcm", keys.key, nonce).setAAD(header);
  const sealed = Buffer.concat([cipher.update(frames), cipher.final(), cipher.getAuthTag()]);
  const mask = headerMask(keys, sealed.subarray(2, 18));
  header[0] = (header[0] as number) ^ ((mask[0] as number) & 0x0f);
  for (const at of [0, 1]) {
    const place = header.length - 2 + at;
    header[place] = (header[place] as number) ^ (mask[at + 1] as number);
  }
  return Buffer.concat([header, sealed]);
}
