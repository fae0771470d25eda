/** Messages behind the handshake: KeyUpdate and NewSessionTicket (RFC 8446 §4.6). */
import { TlsFault } from "./alerts.ts";
import { readExtensions } from "./extensions.ts";
import { WireReader } from "./wire.ts";

/** Seven days in seconds: the longest that a ticket may live. */
const MAX_LIFETIME = 604_800;

/** Does the peer ask for our KeyUpdate as well? Throws `TlsFault`. */
export function decodeKeyUpdate(body: Buffer): boolean {
  if (body.length !== 1) throw new TlsFault("decode_error", "KeyUpdate: wrong length");
  const request = body.readUInt8(0);
  if (request > 1) throw new TlsFault("illegal_parameter", `KeyUpdate: ${request}`);
  return request === 1;
}

/** A ticket is read and not kept: no connection is resumed. Throws `TlsFault`. */
export function checkTicket(body: Buffer): void {
  const reader = new WireReader(body, "NewSessionTicket");
  const lifetime = reader.u32();
  reader.u32();
  reader.vector8();
  reader.vector16(1);
  readExtensions(reader, "NewSessionTicket");
  reader.end();
  if (lifetime > MAX_LIFETIME) throw new TlsFault("illegal_parameter", "NewSessionTicket: lifetime");
}
