/** As options of sockets have times. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.floor(ms / 1_000));
}
