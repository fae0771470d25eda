/** Base32 (RFC 4648 §6), as secrets of one-time codes are written. */
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export function encodeBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => ALPHABET[Number.parseInt(five.padEnd(5, "0"), 2)])
    .join("");
}

/** In any case; blanks and padding do not count. Null: another character is in it. */
export function decodeBase32(text: string): Buffer | null {
  const letters = text.replaceAll(/[\s=-]/g, "").toUpperCase();
  const values = Array.from(letters, (letter) => ALPHABET.indexOf(letter));
  if (values.includes(-1)) return null;
  const bits = values.map((value) => value.toString(2).padStart(5, "0")).join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
