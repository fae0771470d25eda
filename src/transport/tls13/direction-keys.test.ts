import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type CipherSuite, cipherSuite } from "./cipher-suites.ts";
import { DirectionKeys } from "./direction-keys.ts";
import { trafficIv } from "./key-schedule.ts";

const suite = cipherSuite(0x1301) as CipherSuite;

/** RFC 8446 §5.3: the number of the record, big endian and filled to the length of the IV, xor the IV. */
function nonceOf(secret: Uint8Array, sequence: number): Buffer {
  const number = Buffer.alloc(12);
  number.writeBigUInt64BE(BigInt(sequence), 4);
  const iv = trafficIv(suite, secret);
  return number.map((byte, index) => byte ^ (iv[index] as number)) as Buffer;
}

test("nonces are those of the protocol, whatever the number of the record", () => {
  const secrets = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const sequences = fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.constantFrom(2 ** 31 - 1, 2 ** 32 - 2, 2 ** 40 + 7),
    fc.maxSafeNat().filter((number) => number < 2 ** 52),
  );
  fc.assert(
    fc.property(secrets, sequences, (secret, first) => {
      const keys = new DirectionKeys(suite, secret, first);
      for (let sequence = first; sequence < first + 3; sequence++)
        assert.deepEqual(Buffer.from(keys.nextNonce()), Buffer.from(nonceOf(secret, sequence)));
      keys.update();
      const next = nonceOf(keys.secret, 0);
      assert.deepEqual(Buffer.from(keys.nextNonce()), Buffer.from(next));
    }),
  );
});
