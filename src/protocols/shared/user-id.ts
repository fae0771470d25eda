import { createHash } from "node:crypto";
import { scalar, Unsupported } from "#core/fields.ts";
import { byteAt } from "#lib/at.ts";

const HEX = /^[0-9a-f]{32}$/i;

/**
 * The 16 bytes of a user id. 32 hex digits with or without dashes are taken as they are; any other text of 1 to 30
 * bytes is a name: UUID version 5 in the nil namespace (RFC 9562 §5.5). Null for anything else.
 */
export function parseUserId(text: string): Buffer | null {
  const digits = text.replaceAll("-", "");
  if (HEX.test(digits) && text.length <= 36) return Buffer.from(digits, "hex");
  const name = Buffer.from(text);
  if (name.length < 1 || name.length > 30) return null;
  const id = createHash("sha1").update(Buffer.alloc(16)).update(name).digest().subarray(0, 16);
  id[6] = (byteAt(id, 6) & 0x0f) | 0x50;
  id[8] = (byteAt(id, 8) & 0x3f) | 0x80;
  return id;
}

/** Of text that `userId` has let through; throws a RangeError, without it, for any other. */
export function userIdBytes(text: string): Buffer {
  const bytes = parseUserId(text);
  if (bytes === null) throw new RangeError("a user id has 1 to 30 bytes, or is a UUID");
  return bytes;
}

/** The canonical spelling of a user id, so that two texts for the same user become equal. */
export function plainUserId(text: string): string {
  return userIdBytes(text).toString("hex");
}

/** A secret, never shown in messages: it is all that a client proves itself by. */
export const userId = () =>
  scalar({ type: "string", format: "password" }, (source) =>
    parseUserId(source) === null
      ? new Unsupported("expected a UUID, or a text of 1 to 30 bytes that stands for one")
      : source,
  );
