import { uint32At } from "#lib/at.ts";

/** HChaCha20 (draft-irtf-cfrg-xchacha §2.2): 32 bytes of key and 16 of nonce give a subkey of 32. node:crypto has none. */
export function hchacha20(key: Uint8Array, nonce: Uint8Array): Uint8Array {
  const state = new Uint32Array(16);
  state.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]); // "expand 32-byte k"
  loadWords(state, 4, key);
  loadWords(state, 12, nonce);
  for (let round = 0; round < 10; round++) {
    quarter(state, 0, 4, 8, 12);
    quarter(state, 1, 5, 9, 13);
    quarter(state, 2, 6, 10, 14);
    quarter(state, 3, 7, 11, 15);
    quarter(state, 0, 5, 10, 15);
    quarter(state, 1, 6, 11, 12);
    quarter(state, 2, 7, 8, 13);
    quarter(state, 3, 4, 9, 14);
  }
  const out = new Uint8Array(32);
  const view = new DataView(out.buffer);
  for (let at = 0; at < 4; at++) {
    view.setUint32(at * 4, uint32At(state, at), true);
    view.setUint32(16 + at * 4, uint32At(state, 12 + at), true);
  }
  return out;
}

function loadWords(state: Uint32Array, at: number, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let word = 0; word * 4 < bytes.length; word++) state[at + word] = view.getUint32(word * 4, true);
}

function quarter(s: Uint32Array, a: number, b: number, c: number, d: number): void {
  let va = uint32At(s, a);
  let vb = uint32At(s, b);
  let vc = uint32At(s, c);
  let vd = uint32At(s, d);
  va = (va + vb) | 0;
  vd = rotate(vd ^ va, 16);
  vc = (vc + vd) | 0;
  vb = rotate(vb ^ vc, 12);
  va = (va + vb) | 0;
  vd = rotate(vd ^ va, 8);
  vc = (vc + vd) | 0;
  vb = rotate(vb ^ vc, 7);
  s[a] = va;
  s[b] = vb;
  s[c] = vc;
  s[d] = vd;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
