/** The protection of Initial packets, whose keys derive from the packet itself and protect nothing from an observer. */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

export interface QuicVersion {
  readonly number: number;
  /** The two type bits of an Initial packet's first byte. */
  readonly initialType: number;
  readonly salt: Buffer;
  /** `quic` or `quicv2`, before `key`, `iv`, `hp`. */
  readonly label: string;
}

/** RFC 9001 §5.2 and RFC 9369 §3. */
export const QUIC_VERSIONS: readonly QuicVersion[] = [
  {
    number: 0x0000_0001,
    initialType: 0b00,
    salt: Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex"),
    label: "quic",
  },
  {
    number: 0x6b33_43cf,
    initialType: 0b01,
    salt: Buffer.from("0dede3def700a6db819381be6e269dcbf9bd2ed9", "hex"),
    label: "quicv2",
  },
];

export interface InitialKeys {
  readonly key: Buffer;
  readonly iv: Buffer;
  readonly headerKey: Buffer;
}

const TAG_BYTES = 16;

/** The client's keys for the connection that it opened with this destination connection id. */
export function clientKeys({ salt, label }: QuicVersion, connectionId: Uint8Array): InitialKeys {
  const initial = createHmac("sha256", salt).update(connectionId).digest(); // HKDF-Extract
  const secret = expandLabel(initial, "client in", 32);
  return {
    key: expandLabel(secret, `${label} key`, 16),
    iv: expandLabel(secret, `${label} iv`, 12),
    headerKey: expandLabel(secret, `${label} hp`, 16),
  };
}

/**
 * HKDF-Expand-Label (RFC 8446 §7.1) without context, for outputs of one block: LENGTH(2) "tls13 "+LABEL(1+n) CONTEXT(1)=0,
 * and the block's number. `hkdf` of node:crypto would extract first.
 */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
  const full = `tls13 ${label}`;
  const info = Buffer.from([0, length, full.length, ...Buffer.from(full, "latin1"), 0, 1]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, length);
}

/** What hides the first byte and the packet number (RFC 9001 §5.4.3): the AES block of a sample of the ciphertext. */
export function headerMask({ headerKey }: InitialKeys, sample: Uint8Array): Buffer {
  const cipher = createCipheriv("aes-128-ecb", headerKey, null);
  return cipher.setAutoPadding(false).update(sample);
}

/** The frames of a packet; null where the packet is not genuine. `header` is the one without its protection. */
export function openPayload(
  { key, iv }: InitialKeys,
  packetNumber: number,
  header: Uint8Array,
  sealed: Uint8Array,
): Buffer | null {
  if (sealed.length < TAG_BYTES) return null;
  const nonce = Buffer.from(iv);
  const last = nonce.length - 4;
  nonce.writeUInt32BE((nonce.readUInt32BE(last) ^ packetNumber) >>> 0, last);
  const split = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-128-gcm", key, nonce);
  decipher.setAAD(header).setAuthTag(sealed.subarray(split));
  const payload = decipher.update(sealed.subarray(0, split));
  try {
    decipher.final();
    return payload;
  } catch {
    return null; // the tag does not fit: not an Initial packet of a client
  }
}
