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

export interface Ticket {
  /** 0: it is not to be used. */
  readonly lifetimeSeconds: number;
  readonly ageAdd: number;
  readonly nonce: Buffer;
  readonly ticket: Buffer;
}

/** Its extensions are about early data, which is never sent here. Throws `TlsFault`. */
export function decodeTicket(body: Buffer): Ticket {
  const reader = new WireReader(body, "NewSessionTicket");
  const lifetimeSeconds = reader.u32();
  const ageAdd = reader.u32();
  const nonce = reader.vector8();
  const ticket = reader.vector16(1);
  readExtensions(reader, "NewSessionTicket");
  reader.end();
  if (lifetimeSeconds > MAX_LIFETIME) throw new TlsFault("illegal_parameter", "NewSessionTicket: lifetime");
  return { lifetimeSeconds, ageAdd, nonce, ticket };
}
