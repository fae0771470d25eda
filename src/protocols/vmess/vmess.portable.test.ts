/** The tests of the neighbour once more, in a runtime without FFI. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { keepAead } from "#platform/aead.ts";

const { getBuiltinModule } = process;
const withoutFfi = (id: string): object | undefined => (id === "node:ffi" ? undefined : getBuiltinModule(id));
mock.method(process, "getBuiltinModule", withoutFfi as typeof getBuiltinModule);

test("this runtime lends no ciphers", () => {
  assert.equal(keepAead("aes-128-gcm", Buffer.alloc(16)), null);
});

await import("./vmess.test.ts");
