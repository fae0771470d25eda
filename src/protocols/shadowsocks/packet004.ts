/** UDP of the AEAD ciphers (SIP004): SALT then AEAD(nonce 0, ADDRESS DATA), each packet under its own subkey. */
import { randomBytes } from "node:crypto";
import { createAead, TAG_BYTES } from "#protocols/crypto/aead.ts";
import { type Method, sip004Subkey } from "./methods.ts";
import { openStreamPacket, sealStreamPacket } from "./stream-codec.ts";

const ZERO_NONCE = Buffer.alloc(24);

/** `body` is the address in SOCKS form and the data. A fixed salt is for tests. */
export function sealPacket004(method: Method, master: Uint8Array, body: Buffer, salt?: Buffer): Buffer {
  if (method.edition === "plain") return body;
  if (method.stream !== undefined) return sealStreamPacket(method.stream, master, body);
  const fresh = salt ?? randomBytes(method.keyBytes);
  const aead = createAead(method.aead, sip004Subkey(master, fresh));
  const out = Buffer.allocUnsafe(fresh.length + body.length + TAG_BYTES);
  aead.sealInto(out, fresh.copy(out), ZERO_NONCE.subarray(0, aead.nonceBytes), body);
  return out;
}

/** The address and the data; null: not a packet under this key. */
export function openPacket004(method: Method, master: Uint8Array, packet: Buffer): Buffer | null {
  if (method.edition === "plain") return packet;
  if (method.stream !== undefined) return openStreamPacket(method.stream, master, packet);
  if (packet.length < method.keyBytes + TAG_BYTES) return null;
  const aead = createAead(method.aead, sip004Subkey(master, packet.subarray(0, method.keyBytes)));
  return aead.open(ZERO_NONCE.subarray(0, aead.nonceBytes), packet.subarray(method.keyBytes));
}
