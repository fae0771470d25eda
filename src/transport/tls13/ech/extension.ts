/** The extension encrypted_client_hello of a ClientHello (RFC 9849 §5). */
import { TlsFault } from "#transport/tls13/alerts.ts";
import { numbers16, vector16, WireReader } from "#transport/tls13/wire.ts";
import { KDF_SHA256 } from "./hpke.ts";

const OUTER = 0;
const INNER = 1;

/** Of the hello that everybody sees: OUTER(1)=0 KDF(2) AEAD(2) CONFIG(1) ENC(2+n) PAYLOAD(2+n). */
export interface OuterEch {
  readonly kdf: number;
  readonly aead: number;
  readonly configId: number;
  /** Empty behind a HelloRetryRequest. */
  readonly enc: Buffer;
  /** The sealed hello. */
  readonly payload: Buffer;
}

/** The body that marks a hello as the hidden one. */
export const INNER_ECH = Buffer.of(INNER);

export function encodeOuterEch({ aead, configId, enc, payload }: Omit<OuterEch, "kdf">): Buffer {
  return Buffer.concat([
    Buffer.of(OUTER),
    numbers16([KDF_SHA256, aead]),
    Buffer.of(configId),
    vector16(enc),
    vector16(payload),
  ]);
}

/** Null: it marks a hidden hello. Buffers share memory with `body`. Throws `TlsFault`. */
export function decodeEch(body: Buffer): OuterEch | null {
  const reader = new WireReader(body, "encrypted_client_hello");
  const type = reader.u8();
  if (type === INNER) {
    reader.end();
    return null;
  }
  if (type !== OUTER) throw new TlsFault("illegal_parameter", `encrypted_client_hello of type ${type}`);
  const kdf = reader.u16();
  const aead = reader.u16();
  const configId = reader.u8();
  const enc = reader.vector16();
  const payload = reader.vector16(1);
  reader.end();
  return { kdf, aead, configId, enc, payload };
}
