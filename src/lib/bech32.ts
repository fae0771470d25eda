/** Bech32 (BIP 173), as age writes its keys in: without the limit of 90 characters. */
const ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM_LETTERS = 6;

/** The bytes; null: it is not of this prefix, not whole, or mistyped. Lower or upper case, not both. */
export function decodeBech32(text: string, prefix: string): Buffer | null {
  const lower = text.toLowerCase();
  if (text !== lower && text !== text.toUpperCase()) return null;
  if (!lower.startsWith(`${prefix}1`)) return null;
  const letters = Array.from(lower.slice(prefix.length + 1), (letter) => ALPHABET.indexOf(letter));
  if (letters.length < CHECKSUM_LETTERS || letters.includes(-1)) return null;
  if (checksum([...expanded(prefix), ...letters]) !== 1) return null;
  return regrouped(letters.slice(0, -CHECKSUM_LETTERS));
}

function expanded(prefix: string): readonly number[] {
  const codes = [...Buffer.from(prefix)];
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)];
}

const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

function checksum(values: readonly number[]): number {
  let sum = 1;
  for (const value of values) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    for (const [bit, term] of GENERATOR.entries()) if (((top >> bit) & 1) === 1) sum ^= term;
  }
  return sum >>> 0;
}

/** Fives of bits as eights; what is left over has to be fewer than five zeros. */
function regrouped(letters: readonly number[]): Buffer | null {
  const bytes: number[] = [];
  let held = 0;
  let bits = 0;
  for (const letter of letters) {
    held = ((held << 5) | letter) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((held >> bits) & 0xff);
  }
  return bits < 5 && (held & ((1 << bits) - 1)) === 0 ? Buffer.from(bytes) : null;
}
