import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { runs } from "../../test/support/runs.ts";
import { decodeHead, encodeHead, parseConfiguredPath, pathOf } from "./http-head.ts";

test("a head round-trips; every truncation waits", () => {
  const bytes = encodeHead("GET /ws HTTP/1.1", [
    ["Host", "a.test"],
    ["X", ""],
  ]);
  const decoded = decodeHead(Buffer.concat([bytes, Buffer.from("rest")]), 0);
  assert.equal(decoded?.size, bytes.length);
  assert.equal(decoded?.value.start, "GET /ws HTTP/1.1");
  assert.equal(decoded?.value.fields.get("host"), "a.test");
  for (let size = 0; size < bytes.length; size++) assert.equal(decodeHead(bytes.subarray(0, size), 0), null);
  for (let seen = 0; seen < bytes.length; seen++) assert.notEqual(decodeHead(bytes, seen), null);
});

test("long heads, many fields, fields without names and smuggled line breaks are refused", () => {
  const refused = (text: string) => assert.throws(() => decodeHead(Buffer.from(text), 0), ProtocolError);
  refused("x".repeat(8193));
  refused(`GET / HTTP/1.1\r\n${"a: b\r\n".repeat(101)}\r\n`);
  refused("GET / HTTP/1.1\r\nnothing\r\n\r\n");
  assert.throws(() => encodeHead("GET / HTTP/1.1", [["Host", "a\r\nX: y"]]), ProtocolError);
  const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    try {
      decodeHead(Buffer.from(bytes), 0);
    } catch (error) {
      assert.ok(error instanceof ProtocolError);
    }
  });
  fc.assert(property, { numRuns: runs(300) });
});

test("?ed=N is taken out of a configured path, other parts stay", () => {
  assert.deepEqual(parseConfiguredPath("ws"), { path: "/ws", earlyDataBytes: 0 });
  assert.deepEqual(parseConfiguredPath("/ws?ed=2048"), { path: "/ws", earlyDataBytes: 2048 });
  assert.deepEqual(parseConfiguredPath("/ws?a=1&ed=1&b=2"), { path: "/ws?a=1&b=2", earlyDataBytes: 1 });
  assert.equal(pathOf("/ws?a=1"), "/ws");
});
