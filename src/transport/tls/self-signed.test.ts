import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { makeSelfSigned } from "./self-signed.ts";

test("a self-signed certificate is for its names and addresses, fits its key and verifies itself", () => {
  const nowMs = Date.UTC(2049, 5, 1);
  const { certificate, privateKey } = makeSelfSigned(["www.example.org", "192.0.2.1", "2001:db8::1"], nowMs);
  const read = new X509Certificate(certificate);
  assert.equal(read.subject, "CN=www.example.org");
  assert.equal(
    read.subjectAltName,
    "DNS:www.example.org, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1",
  );
  assert.ok(read.verify(read.publicKey));
  assert.ok(read.checkPrivateKey(createPrivateKey(privateKey)));
  assert.ok(!read.ca);
  assert.equal(read.validFromDate.getTime(), nowMs - 86_400_000);
  assert.equal(read.validToDate.getTime(), nowMs + 3650 * 86_400_000);
});
