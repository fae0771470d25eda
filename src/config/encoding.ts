/** From the bytes of a file to its text. */
import { isUtf8 } from "node:buffer";
import { ConfigError } from "#core/errors.ts";
import { utf16Of } from "#lib/decoded-text.ts";

const NEWLINE = 0x0a;

/**
 * UTF-8, or UTF-16 with a byte order mark, as YAML has it (1.2 §5.2). Throws `ConfigError` with the position of bytes
 * that are neither, prefixed with `name`: names with letters in another encoding would match nothing.
 */
export function decodeConfig(bytes: Uint8Array, name: string): string {
  const text = utf16Of(bytes) ?? (isUtf8(bytes) ? new TextDecoder().decode(bytes) : null);
  if (text !== null && !text.includes("\0")) return text;
  throw new ConfigError(
    `${name}:${positionOf(bytes)} (document): this is no text in UTF-8; save the file as UTF-8`,
  );
}

/** The text as bytes in the encoding of a file, with the byte order mark that it has. */
export function encodeConfig(text: string, like: Uint8Array): Uint8Array {
  const [first, second, third] = like;
  const isBig = first === 0xfe && second === 0xff;
  if (isBig || (first === 0xff && second === 0xfe)) {
    const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
    return isBig ? bytes.swap16() : bytes;
  }
  const isMarked = first === 0xef && second === 0xbb && third === 0xbf;
  return Buffer.from(isMarked ? `\ufeff${text}` : text);
}

/** `line:column` of the first byte that no text has; no character of UTF-8 has a line end inside. */
function positionOf(bytes: Uint8Array): string {
  let line = 1;
  for (let begin = 0; begin < bytes.length; line++) {
    const found = bytes.indexOf(NEWLINE, begin);
    const end = found < 0 ? bytes.length : found;
    const part = bytes.subarray(begin, end);
    if (!isUtf8(part) || part.includes(0)) {
      const column = new TextDecoder().decode(part).search(/[\0\ufffd]/);
      return `${line}:${column + 1}`;
    }
    begin = end + 1;
  }
  return "1:1";
}
