import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { Hmac } from "./hmac.ts";

test("it is what node:crypto makes, in one piece or several", () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  const key = fc.uint8Array({ minLength: 1, maxLength: 64 });
  fc.assert(
    fc.property(key, bytes, bytes, (secret, first, second) => {
      const expected = createHmac("sha256", secret).update(first).update(second).digest();
      assert.deepEqual(new Hmac(secret).of([first, second]), expected);
    }),
  );
});
