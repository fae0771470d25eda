/** The tests of the neighbour once more, in a runtime without FFI. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { nativeTls } from "#platform/tls.ts";

const { getBuiltinModule } = process;
const withoutFfi = (id: string): object | undefined => (id === "node:ffi" ? undefined : getBuiltinModule(id));
mock.method(process, "getBuiltinModule", withoutFfi as typeof getBuiltinModule);

test("this runtime lends no TLS", () => {
  assert.equal(nativeTls(), null);
});

await import("./tls.test.ts");
