/** The tests of the neighbour once more, in a runtime without FFI. */
import "../../../test/support/without-ffi.ts";
import "./streams.test.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { keepAead } from "#platform/aead.ts";

test("this runtime lends no ciphers", () => {
  assert.equal(keepAead("aes-128-gcm", Buffer.alloc(16)), null);
});
