import assert from "node:assert/strict";
import { test } from "node:test";
import { countOf, endToEnd, withoutProxyFields } from "./forward-fields.ts";

test("end to end: order and spelling stay, this hop's fields go", () => {
  const raw = [
    "A",
    "1",
    "Connection",
    "close, b",
    "connection",
    " C ",
    "B",
    "2",
    "c",
    "3",
    "TE",
    "x",
    "a",
    "4",
  ];
  assert.deepEqual(endToEnd(raw), ["A", "1", "a", "4"]);
  assert.deepEqual(endToEnd(["Host", "x", "D", "1"], ["host"]), ["D", "1"]);
});

test("the length of a body is never removed by its sender's wish", () => {
  assert.deepEqual(endToEnd(["Connection", "Content-Length", "Content-Length", "3"]), [
    "Content-Length",
    "3",
  ]);
});

test("upgrades keep all but the proxy's own", () => {
  const raw = ["Connection", "Upgrade", "Upgrade", "x", "Proxy-Authorization", "s", "proxy-connection", "k"];
  assert.deepEqual(withoutProxyFields(raw), ["Connection", "Upgrade", "Upgrade", "x"]);
});

test("count", () => assert.equal(countOf(["Host", "a", "hOST", "b", "X", "host"], "host"), 2));
