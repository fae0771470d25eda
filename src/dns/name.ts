/**
 * Domain names: wire form ↔ text. Text is the presentation form of RFC 1035 §5.1 without the final dot; the root is "".
 * A dot or backslash inside a label is written `\.` and `\\`, any other byte outside 0x21–0x7e as `\DDD`, so two
 * different names never have the same text.
 */
import { ProtocolError } from "#core/errors.ts";
import { HEADER_BYTES } from "./types.ts";
import { byteAt } from "#lib/at.ts";

const MAX_NAME_BYTES = 255;
const MAX_LABEL_BYTES = 63;
const MAX_JUMPS = 128;
const DOT = 46;
const BACKSLASH = 92;

/** Takes a label: bytes[start, start + length). */
type OnLabel = (start: number, length: number) => void;

/**
 * Walks the name at `at`, following compression pointers (RFC 1035 §4.1.4), and answers where the field ends. Every
 * pointer must go back behind the run of labels that holds it, so no chain can loop, and not into the header, which
 * changes from hop to hop. Throws `ProtocolError`.
 */
export function walkName(bytes: Uint8Array, at: number, onLabel?: OnLabel): number {
  let end = -1;
  let floor = at;
  let total = 1;
  let jumps = 0;
  for (let position = at; ;) {
    const length = bytes[position];
    if (length === undefined) throw new ProtocolError("DNS name runs past the end of the message");
    if (length === 0) return end < 0 ? position + 1 : end;
    if (length <= MAX_LABEL_BYTES) {
      total += length + 1;
      if (total > MAX_NAME_BYTES) throw new ProtocolError("DNS name is longer than 255 bytes");
      if (position + 1 + length >= bytes.length) throw new ProtocolError("DNS label runs past the end");
      onLabel?.(position + 1, length);
      position += length + 1;
      continue;
    }
    const low = bytes[position + 1];
    if (length < 0xc0 || low === undefined) throw new ProtocolError("DNS label has a reserved type");
    if (end < 0) end = position + 2;
    const target = ((length & 0x3f) << 8) | low;
    if (target >= floor || target < HEADER_BYTES || ++jumps > MAX_JUMPS)
      throw new ProtocolError("DNS compression pointer does not go back to a name");
    floor = target;
    position = target;
  }
}

export function readName(bytes: Uint8Array, at: number): { readonly name: string; readonly end: number } {
  let name = "";
  const end = walkName(bytes, at, (start, length) => {
    if (name !== "") name += ".";
    for (let index = start; index < start + length; index++) name += byteText(byteAt(bytes, index));
  });
  return { name, end };
}

/** One byte of a label as text. */
export function byteText(byte: number): string {
  if (byte === DOT || byte === BACKSLASH) return `\\${String.fromCharCode(byte)}`;
  if (byte > 0x20 && byte < 0x7f) return String.fromCharCode(byte);
  return `\\${String(byte).padStart(3, "0")}`;
}

/** Labels of a name in text form, as bytes. Throws `ProtocolError` where a label or the whole is too long or empty. */
export function labelsOf(name: string): readonly Uint8Array[] {
  if (name === "" || name === ".") return [];
  const labels: Uint8Array[] = [];
  let label: number[] = [];
  let total = 1;
  const close = () => {
    if (label.length === 0) throw new ProtocolError("DNS name has an empty label");
    if (label.length > MAX_LABEL_BYTES) throw new ProtocolError("DNS label is longer than 63 bytes");
    total += label.length + 1;
    if (total > MAX_NAME_BYTES) throw new ProtocolError("DNS name is longer than 255 bytes");
    labels.push(Uint8Array.from(label));
    label = [];
  };
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code === DOT) close();
    else if (code === BACKSLASH) {
      const [byte, used] = unescapeByte(name, at);
      label.push(byte);
      at += used;
    } else if (code > 0xff) throw new ProtocolError("DNS name has a character outside one byte");
    else label.push(code);
  }
  if (!name.endsWith(".") || label.length > 0) close(); // a final dot ends the last label
  return labels;
}

function unescapeByte(name: string, at: number): readonly [byte: number, used: number] {
  const digits = /^\d{3}/.exec(name.slice(at + 1, at + 4))?.[0];
  if (digits !== undefined && Number(digits) <= 0xff) return [Number(digits), 3];
  const code = name.charCodeAt(at + 1);
  if (Number.isNaN(code) || code > 0xff) throw new ProtocolError("DNS name ends in the middle of an escape");
  return [code, 1];
}

/** Uncompressed wire form. */
export function nameBytes(name: string): Uint8Array {
  const labels = labelsOf(name);
  const bytes = new Uint8Array(labels.reduce((sum, label) => sum + label.length + 1, 1));
  let at = 0;
  for (const label of labels) {
    bytes[at] = label.length;
    bytes.set(label, at + 1);
    at += label.length + 1;
  }
  return bytes;
}

/**
 * Lower case, no final dot: the form in which names are compared and stored. Only ASCII letters have a case in the DNS.
 */
export function canonicalName(name: string): string {
  const trimmed = name.endsWith(".") && !name.endsWith("\\.") ? name.slice(0, -1) : name;
  return trimmed.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
