import { byteAt, itemAt } from "#lib/at.ts";

/** Reads address text into words without allocating: what the tries do on every lookup. */
export class IpReader {
  /** IPv4: word 0. IPv6: words 0 to 3, most significant first. */
  readonly words = new Uint32Array(4);
  readonly #groups = new Uint16Array(8);

  /** The family, or 0 where the text is no canonical address (`Ip`). Replaces what was read before. */
  read(text: string): 0 | 4 | 6 {
    return text.includes(":") ? this.#readV6(text) : this.#readV4(text);
  }

  /** 4 or 16 bytes; 0 for any other length. */
  readBytes(bytes: Uint8Array): 0 | 4 | 6 {
    if (bytes.length !== 4 && bytes.length !== 16) return 0;
    for (let at = 0; at < bytes.length; at += 4)
      this.words[at >> 2] =
        (byteAt(bytes, at) << 24) |
        (byteAt(bytes, at + 1) << 16) |
        (byteAt(bytes, at + 2) << 8) |
        byteAt(bytes, at + 3);
    return bytes.length === 4 ? 4 : 6;
  }

  #readV4(text: string): 0 | 4 {
    let word = 0;
    let part = 0;
    let dots = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === 46) {
        word = (word << 8) | part;
        part = 0;
        dots++;
      } else if (code >= 48 && code <= 57) {
        part = part * 10 + code - 48;
        if (part > 255) return 0;
      } else return 0;
    }
    if (dots !== 3) return 0;
    this.words[0] = (word << 8) | part;
    return 4;
  }

  #readV6(text: string): 0 | 6 {
    const groups = this.#groups.fill(0);
    let count = 0;
    let gap = -1;
    let value = -1;
    for (let at = 0; at <= text.length; at++) {
      const code = at < text.length ? text.charCodeAt(at) : 58;
      if (code === 58) {
        if (value >= 0) {
          if (count > 7) return 0;
          groups[count++] = value;
          value = -1;
        }
        if (at + 1 < text.length && text.charCodeAt(at + 1) === 58) gap = count;
        continue;
      }
      const digit = hexDigit(code);
      if (digit < 0) return 0;
      value = (value < 0 ? 0 : value << 4) | digit;
      if (value > 0xffff) return 0;
    }
    if (gap < 0 ? count !== 8 : count > 7) return 0;
    if (gap >= 0 && gap < count) {
      groups.copyWithin(8 - (count - gap), gap, count);
      groups.fill(0, gap, Math.max(gap, 8 - (count - gap)));
    }
    for (let at = 0; at < 4; at++)
      this.words[at] = (itemAt(groups, at * 2) << 16) | itemAt(groups, at * 2 + 1);
    return 6;
  }
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  if (code >= 97 && code <= 102) return code - 87;
  return code >= 65 && code <= 70 ? code - 55 : -1;
}
