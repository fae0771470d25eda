/** From the bytes of a document to its text. */

/** Text of any provenance: UTF-16 where it says so, else UTF-8, where bytes that are none become U+FFFD. Without the mark. */
export function decodedText(bytes: Uint8Array): string {
  const text = utf16Of(bytes) ?? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  return text.replace(/^\uFEFF/, "");
}

/** Null where no byte order mark says that it is UTF-16. */
export function utf16Of(bytes: Uint8Array): string | null {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  return first === 0xfe && second === 0xff ? new TextDecoder("utf-16be").decode(bytes) : null;
}
