/** The tests of the neighbour once more, in a runtime without FFI. */
import "../support/without-ffi.ts";
import "./tls.test.ts";
import "./tls-client.test.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { nativeTls } from "../support/native-tls.ts";

test("this runtime lends no TLS", () => {
  assert.equal(nativeTls, null);
});
