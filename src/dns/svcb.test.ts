import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import { nameBytes } from "./name.ts";
import { readServiceBinding, svcbText } from "./svcb.ts";

const ECH = Buffer.from("0004fe0d0000", "hex");
const param = (key: number, value: Buffer): Buffer =>
  Buffer.concat([Buffer.of(0, key, value.length >> 8, value.length & 0xff), value]);
const record = Buffer.concat([
  Buffer.of(0, 1),
  nameBytes("svc.example"),
  param(1, Buffer.from("\u0002h2")),
  param(5, ECH),
]);

test("priority, target and the configuration of Encrypted ClientHello", () => {
  assert.deepEqual(readServiceBinding(record), { priority: 1, target: "svc.example", ech: ECH });
  assert.equal(svcbText(record), `1 svc.example. alpn="h2" ech=${ECH.toString("base64")}`);
  const alias = Buffer.concat([Buffer.of(0, 0), nameBytes("other.example")]);
  assert.deepEqual(readServiceBinding(alias), { priority: 0, target: "other.example", ech: null });
});

test("every cut ends between two parameters, or is refused; random bytes are never more than that", () => {
  const whole = new Set([2 + 13, 2 + 13 + 4 + 3, record.length]);
  for (let size = 0; size < record.length; size++)
    if (whole.has(size)) assert.equal(readServiceBinding(record.subarray(0, size)).ech, null);
    else assert.throws(() => readServiceBinding(record.subarray(0, size)), ProtocolError, `${size} bytes`);
  for (let left = 500; left > 0; left--)
    try {
      readServiceBinding(randomBytes(left % 60));
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
    }
});
