/** DER (X.690): TAG(1) LENGTH(1 to 3) VALUE. At most 65,535 bytes of value. */
export function der(tag: number, ...inner: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(inner);
  return Buffer.concat([Buffer.of(tag), lengthOf(body.length), body]);
}

export const sequence = (...inner: readonly Uint8Array[]): Buffer => der(0x30, ...inner);

function lengthOf(size: number): Buffer {
  if (size < 0x80) return Buffer.of(size);
  return size < 0x100 ? Buffer.of(0x81, size) : Buffer.of(0x82, size >> 8, size & 0xff);
}
