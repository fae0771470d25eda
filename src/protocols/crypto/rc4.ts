/** RC4, which the runtime's default provider no longer has. Broken as a cipher; here for `rc4-md5` of old servers alone. */

/** A keystream from its beginning; each call continues where the last one ended. */
export function rc4(key: Uint8Array): (bytes: Uint8Array) => Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, at) => at);
  const at = (index: number): number => state[index] ?? 0;
  for (let i = 0, j = 0; i < 256; i++) {
    j = (j + at(i) + (key[i % key.length] ?? 0)) & 255;
    [state[i], state[j]] = [at(j), at(i)];
  }
  let [i, j] = [0, 0];
  return (bytes) => {
    const out = Buffer.allocUnsafe(bytes.length);
    for (let next = 0; next < bytes.length; next++) {
      i = (i + 1) & 255;
      const left = at(i);
      j = (j + left) & 255;
      const right = at(j);
      state[i] = right;
      state[j] = left;
      out[next] = (bytes[next] ?? 0) ^ at((left + right) & 255);
    }
    return out;
  };
}
