/** What a server answers without keeping anything of the client. */
import { randomBytes, randomInt } from "node:crypto";
import { retryTag } from "#transport/quic/protection/retry-tag.ts";
import { MAX_CID_BYTES, VERSION_1, writeVersions } from "#transport/quic/wire/header.ts";
import { RESET_TOKEN_BYTES } from "#transport/quic/wire/transport-parameters.ts";
import { WireWriter } from "#transport/quic/wire/writer.ts";

const LONG_RETRY = 0xf0;
const SHORT = 0x40;
/** A reset looks like a short packet with a few bytes: at least so many in all (RFC 9000 §10.3). */
const LEAST_RESET_BYTES = 5 + RESET_TOKEN_BYTES;
const RESET_SPREAD = 20;
const MOST_VERSION_BYTES = 1 + 4 + 2 * (1 + 255) + 8;

/** Retry (RFC 9000 §17.2.5): FIRST(1) VERSION(4) DCID(1+n) SCID(1+n) TOKEN TAG(16) */
export function encodeRetry(
  ids: { readonly client: Uint8Array; readonly source: Uint8Array; readonly original: Uint8Array },
  token: Uint8Array,
): Buffer {
  const { client, source, original } = ids;
  const bytes = Buffer.alloc(1 + 4 + 2 * (1 + MAX_CID_BYTES) + token.length);
  const out = new WireWriter(bytes);
  out.byte(LONG_RETRY | randomInt(16)); // the last four bits are unused
  out.uint32(VERSION_1);
  for (const id of [client, source]) {
    out.byte(id.length);
    out.put(id);
  }
  out.put(token);
  const packet = bytes.subarray(0, out.at);
  return Buffer.concat([packet, retryTag(packet, original)]);
}

/** Version Negotiation (RFC 9000 §17.2.1), of ids and the version as the client's packet has them. */
export function encodeVersions(destination: Uint8Array, source: Uint8Array, refused: number): Buffer {
  const bytes = Buffer.alloc(MOST_VERSION_BYTES);
  const out = new WireWriter(bytes);
  writeVersions(out, { source, destination }, refused);
  return bytes.subarray(0, out.at);
}

/** Null where it could not be shorter than the packet that it answers: two servers would answer each other for ever. */
export function encodeReset(token: Uint8Array, answeredBytes: number): Buffer | null {
  const most = answeredBytes - 1;
  if (most < LEAST_RESET_BYTES) return null;
  const size = Math.min(most, LEAST_RESET_BYTES + randomInt(RESET_SPREAD));
  const packet = randomBytes(size);
  packet[0] = SHORT | ((packet[0] ?? 0) & 0x3f);
  packet.set(token, size - RESET_TOKEN_BYTES);
  return packet;
}
