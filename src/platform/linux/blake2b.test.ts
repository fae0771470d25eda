import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { blake2b } from "@noble/hashes/blake2.js";
import { Blake2bLibrary } from "./blake2b.ts";

const library = Blake2bLibrary.open();

test(
  "digests of libcrypto are those of BLAKE2b, whatever the prefix, and one does not disturb the next",
  {
    skip: library === null ? "SKIP libcrypto by FFI: only on Linux" : false,
  },
  () => {
    for (const prefixBytes of [0, 1, 16, 127, 128, 129, 1000]) {
      const prefix = randomBytes(prefixBytes);
      const made = library?.make(prefix, 8, 32);
      assert.ok(made !== undefined);
      for (let again = 0; again < 3; again++) {
        const tail = randomBytes(8);
        made.tail.set(tail);
        made.run();
        assert.deepEqual(
          Buffer.from(made.digest),
          Buffer.from(blake2b(Buffer.concat([prefix, tail]), { dkLen: 32 })),
        );
      }
    }
  },
);
