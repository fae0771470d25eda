/** The Internet checksum (RFC 1071) and its change in place (RFC 1624). Sums are ones' complement, folded to 16 bits. */

export function fold(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + (folded >>> 16); // no sum of a packet reaches 32 bits
  return folded;
}

/** The sum of the words of a range added to `sum`; an odd last byte counts as the high one. Not folded. */
export function sumOf(view: DataView, from: number, end: number, sum = 0): number {
  let total = sum;
  let at = from;
  for (; at + 8 <= end; at += 8)
    total += view.getUint16(at) + view.getUint16(at + 2) + view.getUint16(at + 4) + view.getUint16(at + 6);
  for (; at + 2 <= end; at += 2) total += view.getUint16(at);
  return at < end ? total + view.getUint8(at) * 0x100 : total;
}

/** What `sumOf` would gain if the range were replaced: subtract before the change, add after it. Not folded. */
export function takenFrom(view: DataView, from: number, end: number): number {
  let total = 0;
  for (let at = from; at < end; at += 2) total += 0xffff - view.getUint16(at);
  return total;
}

/** Changes the checksum at `at` by a difference of sums (RFC 1624 §3: HC' = ~(~HC + ~m + m')). */
export function adjust(view: DataView, at: number, difference: number): void {
  view.setUint16(at, 0xffff - fold(0xffff - view.getUint16(at) + difference));
}

/** The same where the field holds a sum that is not complemented yet. */
export function adjustPartial(view: DataView, at: number, difference: number): void {
  view.setUint16(at, fold(view.getUint16(at) + difference));
}

/** The pseudo-header of UDP, TCP and ICMPv6 (RFC 768, RFC 8200 §8.1). `addressesAt`: source, right behind it destination. */
export function pseudoSum(
  view: DataView,
  addressesAt: number,
  addressBytes: number,
  protocol: number,
  length: number,
): number {
  return sumOf(view, addressesAt, addressesAt + addressBytes * 2, protocol + length);
}
