import assert from "node:assert/strict";
import { test } from "node:test";
import { freeGiven } from "./aead.ts";
import { type Contexts, Evp } from "./linux/evp.ts";

const skip = Evp.open() === null ? "SKIP contexts of ciphers: no libcrypto by FFI" : false;

test("what another thread has made is freed by one that never had a cipher", { skip }, (t) => {
  const freed: bigint[] = [];
  t.mock.method(Evp.prototype, "free", ({ sealing }: Contexts) => void freed.push(sealing));
  freeGiven(77n);
  assert.deepEqual(freed, [77n]);
});
