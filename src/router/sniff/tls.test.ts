import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inRecords, messageOf, tlsClientHello } from "../../../test/support/client-hello.ts";
import { runs } from "../../../test/support/runs.ts";
import type { Verdict } from "./probe.ts";
import { tls } from "./tls.ts";

const hello = await tlsClientHello("www.example.org");
const FOUND: Verdict = { host: "www.example.org" };

/** The verdict after the last piece; pieces after a verdict are not fed. */
function feed(...pieces: readonly Uint8Array[]): Verdict {
  const probe = tls.open();
  let verdict: Verdict = "more";
  for (const piece of pieces) if (verdict === "more") verdict = probe.feed(piece);
  return verdict;
}

test("a hello in one piece, cut in two at every byte, and byte by byte", () => {
  assert.deepEqual(feed(hello), FOUND);
  for (let at = 0; at <= hello.length; at++)
    assert.deepEqual(feed(hello.subarray(0, at), hello.subarray(at)), FOUND, `cut at ${at}`);
  assert.deepEqual(feed(...Array.from(hello, (byte) => Uint8Array.of(byte))), FOUND);
});

test("a hello over many records, in many segments", () => {
  const message = messageOf(hello);
  for (const size of [1, 2, 3, 50, message.length - 1]) {
    const records = inRecords(message, size);
    assert.deepEqual(feed(records), FOUND);
    assert.deepEqual(feed(...Array.from(records, (byte) => Uint8Array.of(byte))), FOUND);
  }
});

test("every truncation waits for more", () => {
  for (let size = 0; size < hello.length; size++) assert.equal(feed(hello.subarray(0, size)), "more");
});

test("other protocols are refused at their first wrong byte", () => {
  const wrong = ["15", "1602", "160305", "1603010000", "1603014001", "160301000102", "16030100040100ffff01"];
  for (const hex of wrong) assert.equal(feed(Buffer.from(hex, "hex")), "other", hex);
  for (const text of ["GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\0"])
    assert.equal(feed(Buffer.from(text)), "other");
});

test("addresses, names of one label and odd names are not taken", async () => {
  const offset = hello.indexOf("www.example.org");
  for (const name of [
    "192.000.002.001",
    "localhost......",
    "www example.org",
    "www.example..or",
    "aaa.bbb.ccc.123",
  ]) {
    const bad = Buffer.from(hello);
    bad.write(name, offset, "latin1");
    assert.equal(feed(bad), "other", name);
  }
  const upper = Buffer.from(hello);
  upper.write("WWW.EXAMPLE.OR.", offset, "latin1");
  assert.deepEqual(feed(upper), { host: "www.example.or" });
  assert.equal(feed(await tlsClientHello("")), "other");
});

test("bytes changed at random, and random bytes, get a verdict and never a throw", () => {
  const change = fc.tuple(fc.nat(hello.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), fc.uint8Array(), (changes, noise) => {
      const bad = Buffer.from(hello);
      for (const [at, value] of changes) bad[at] = value;
      for (const bytes of [bad, noise, Buffer.concat([hello.subarray(0, 60), noise])]) {
        const verdict = feed(bytes);
        assert.ok(typeof verdict === "string" || /^[a-z0-9_.-]+$/.test(verdict.host));
      }
    }),
    { numRuns: runs(1000) },
  );
});
