import assert from "node:assert/strict";
import { test } from "node:test";
import { keysOf, signatureOf } from "./webhook-signature.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** The example of the scheme's own documentation and libraries (https://www.standardwebhooks.com). */
test("the signature of the scheme's example", () => {
  const keys = keysOf(SECRET);
  assert.ok(typeof keys !== "string");
  const signed = {
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestampSeconds: 1614265330,
    body: '{"test": 2432232314}',
  };
  assert.equal(signatureOf(signed, keys), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test("several keys give several signatures, and what is no key is refused without being quoted", () => {
  const both = keysOf(`${SECRET}\n whsec_${Buffer.alloc(32, 1).toString("base64")}\n`);
  assert.ok(typeof both !== "string");
  const text = signatureOf({ id: "a", timestampSeconds: 1, body: "{}" }, both);
  assert.match(text, /^v1,[\w+/]{43}= v1,[\w+/]{43}=$/);
  for (const bad of ["", "hunter2", "whsec_", "whsec_c2hvcnQ=", `whsec_${"A".repeat(200)}`, `${SECRET}!`]) {
    const fault = keysOf(bad);
    assert.ok(typeof fault === "string", bad);
    if (bad.length > 6) assert.ok(!fault.includes(bad));
  }
});
