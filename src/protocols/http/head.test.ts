import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import { decodeConnect, decodeStatus } from "./head.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

test("CONNECT: decoded, and waited for at every truncation", () => {
  const head =
    "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nproxy-AUTHORIZATION:  Basic eA== \r\n\r\n";
  const decoded = decodeConnect(bytes(`${head}tail`), 0);
  assert.deepEqual(decoded, {
    size: head.length,
    value: { version: "1.1", target: "example.com:443", authorization: "Basic eA==", persistent: true },
  });
  for (let size = 0; size < head.length; size++) {
    assert.equal(decodeConnect(bytes(head.slice(0, size)), 0), null);
    assert.equal(decodeConnect(bytes(head), size)?.size, head.length);
  }
});

test("another method: no byte is taken", () => {
  for (const text of ["GET ", "C0", "CONNECTX", "connect a:1 HTTP/1.1\r\n\r\n", "\x16\x03\x01"])
    assert.deepEqual(decodeConnect(bytes(text), 0), { value: null, size: 0 });
});

test("which requests keep the connection", () => {
  const persistent = (version: string, field: string) =>
    decodeConnect(bytes(`CONNECT a:1 HTTP/${version}\r\n${field}\r\n\r\n`), 0)?.value?.persistent;
  assert.equal(persistent("1.1", "Host: a"), true);
  assert.equal(persistent("1.1", "Connection: Close"), false);
  assert.equal(persistent("1.1", "Proxy-Connection: close"), false);
  assert.equal(persistent("1.0", "Host: a"), false);
  assert.equal(persistent("1.0", "Proxy-Connection: Keep-Alive"), true);
});

test("status of an answer", () => {
  const head = "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
  assert.deepEqual(decodeStatus(bytes(`${head}220 smtp`), 0), { value: 200, size: head.length });
  for (let size = 0; size < head.length; size++)
    assert.equal(decodeStatus(bytes(head.slice(0, size)), 0), null);
  assert.equal(decodeStatus(bytes("HTTP/1.0 407\r\n\r\n"), 0)?.value, 407);
  for (const text of ["SSH-2.0", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 999 x\r\n\r\n"])
    assert.throws(() => decodeStatus(bytes(text), 0), ProtocolError, text);
});
