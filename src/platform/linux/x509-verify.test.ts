import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { makeCertificate, type TestCertificate } from "../../../test/support/certificate.ts";
import { nativeTls } from "../../../test/support/native-tls.ts";

const skip = nativeTls === null ? "SKIP libcrypto by FFI: only on Linux" : false;
const DAY_MS = 86_400_000;
const der = ({ cert }: TestCertificate): Buffer => new X509Certificate(cert).raw;

test("a chain lasts as long as the first of its certificates that runs out", { skip }, () => {
  const { clients, verifier } = nativeTls ?? assert.fail();
  for (const [ofAuthority, ofBetween, ofServer] of [
    [3, 2, 1],
    [1.5, 900, 90],
    [400, 0.25, 60],
  ] as const) {
    const authority = makeCertificate({ names: ["a"], ca: true, validForMs: ofAuthority * DAY_MS });
    const between = makeCertificate({
      names: ["b"],
      issuer: authority,
      ca: true,
      validForMs: ofBetween * DAY_MS,
    });
    const server = makeCertificate({ names: ["c"], issuer: between, validForMs: ofServer * DAY_MS });
    const store = clients.makeStore(authority.cert);
    const { lastsMs, refusal, found } = verifier.verify(store.address, [der(server), der(between)]);
    assert.equal(refusal, null);
    assert.equal(found.length, 3);
    const expected = Math.min(ofAuthority, ofBetween, ofServer) * DAY_MS;
    assert.ok(Math.abs(lastsMs - expected) < 60_000, `${lastsMs} ms, expected ${expected}`);
    assert.equal(verifier.verify(store.address, [der(server)]).lastsMs, 0, "it is not accepted");
  }
});
