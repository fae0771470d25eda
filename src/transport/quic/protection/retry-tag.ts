/** The tag at the end of a Retry packet, by which a client sees that it answers its own Initial (RFC 9001 §5.8). */
import { createCipheriv, timingSafeEqual } from "node:crypto";

const KEY = Buffer.from("be0c690b9f66575a1d766b54e368c84e", "hex");
const NONCE = Buffer.from("461599d35d632bf2239825bb", "hex");
export const RETRY_TAG_BYTES = 16;

/** `packet`: without its tag. `original`: the destination of the client's first Initial. */
export function retryTag(packet: Uint8Array, original: Uint8Array): Buffer {
  const cipher = createCipheriv("aes-128-gcm", KEY, NONCE);
  cipher.setAAD(Buffer.concat([Buffer.of(original.length), original, packet]));
  cipher.final();
  return cipher.getAuthTag();
}

/** `packet`: with its tag. */
export function isRetryAuthentic(packet: Uint8Array, original: Uint8Array): boolean {
  const end = packet.length - RETRY_TAG_BYTES;
  return end > 0 && timingSafeEqual(retryTag(packet.subarray(0, end), original), packet.subarray(end));
}
