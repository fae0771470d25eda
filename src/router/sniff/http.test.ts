import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/support/runs.ts";
import { http } from "./http.ts";
import type { Verdict } from "./probe.ts";

function feed(...pieces: readonly (string | Uint8Array)[]): Verdict {
  const probe = http.open();
  let verdict: Verdict = "more";
  for (const piece of pieces)
    if (verdict === "more")
      verdict = probe.feed(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
  return verdict;
}

const HEAD = "GET /path?x=1 HTTP/1.1\r\nAccept: */*\r\nhOsT:  Www.Example.org:8080 \r\nUser-Agent: x\r\n\r\n";
const FOUND: Verdict = { host: "www.example.org" };

test("the Host of a head, cut in two at every byte, and byte by byte", () => {
  assert.deepEqual(feed(HEAD), FOUND);
  for (let at = 0; at <= HEAD.length; at++) assert.deepEqual(feed(HEAD.slice(0, at), HEAD.slice(at)), FOUND);
  assert.deepEqual(feed(...HEAD.split("")), FOUND);
  assert.deepEqual(feed(HEAD.replaceAll("\r", "")), FOUND);
});

test("every truncation in front of the end of the Host line waits for more", () => {
  const end = HEAD.indexOf("\r\nUser-Agent") + 2;
  for (let size = 0; size < end; size++) assert.equal(feed(HEAD.slice(0, size)), "more");
});

test("HTTP/1.x and nothing else", () => {
  const other = [
    "PRI * HTTP/2.0\r\n",
    "SSH-2.0-OpenSSH_9\r\n",
    "EHLO mail.example.org\r\n",
    "get / HTTP/1.1\r\n",
    "\x16\x03\x01",
    "\r\n",
    " GET / HTTP/1.1",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "GET / HTTP/1.1\r\nno field\r\n",
    "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n",
    "GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\n",
    "GET / HTTP/1.1\r\nHost:\r\n",
    "GET / HTTP/1.1\r\nHost: a.example b.example\r\n",
  ];
  for (const text of other) assert.equal(feed(text), "other", text);
});

test("a head without end is given up, in time proportional to its length", () => {
  assert.equal(feed("GET /", "a".repeat(20_000)), "other");
  assert.equal(feed("GET / HTTP/1.1\r\n", "A: b\r\n".repeat(4000)), "other");
  assert.equal(feed("GET / HTTP/1.1\r\nHost: x", " ".repeat(10_000), "y\r\n"), "other");
});

test("random bytes and changed heads get a verdict", () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.nat(HEAD.length), fc.string(), (noise, at, text) => {
      for (const bytes of [noise, HEAD.slice(0, at) + text + HEAD.slice(at)]) {
        const verdict = feed(bytes);
        assert.ok(typeof verdict === "string" || /^[a-z0-9_.-]+$/.test(verdict.host));
      }
    }),
    { numRuns: runs(1000) },
  );
});
