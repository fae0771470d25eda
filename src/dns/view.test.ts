import assert from "node:assert/strict";
import { test } from "node:test";
import { nameBytes } from "./name.ts";
import { dataText } from "./view.ts";

const text = (type: number, hex: string) =>
  dataText({
    name: "a.org",
    type,
    class: 1,
    ttl: 1,
    data: Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex")),
  });
const hexOf = (name: string) => Buffer.from(nameBytes(name)).toString("hex");

test("records in presentation form", () => {
  assert.equal(text(1, "c0000201"), "192.0.2.1");
  assert.equal(text(28, "20010db8000000000000000000000001"), "2001:db8::1");
  assert.equal(text(5, hexOf("b.org")), "b.org.");
  assert.equal(text(5, "00"), ".");
  assert.equal(text(15, `000a ${hexOf("mx.b.org")}`), "10 mx.b.org.");
  assert.equal(text(33, `0001 0002 0050 ${hexOf("b.org")}`), "1 2 80 b.org.");
  const soa = `${hexOf("ns.org")}${hexOf("me.org")} 00000001 00000002 00000003 00000004 00000005`;
  assert.equal(text(6, soa), "ns.org. me.org. 1 2 3 4 5");
  assert.equal(text(16, "03612262 0100"), '"a\\"b" "\\000"');
  assert.equal(text(257, "00 05 6973737565 632e6f7267"), '0 issue "c.org"');
  assert.equal(text(65, "0001 00"), "1 .");
  const params = "0000 0002 0001  0001 0006 026832 026833  0003 0002 01bb  0004 0004 c0000201  02a0 0001 61";
  assert.equal(
    text(65, `0001 ${hexOf("b.org")} ${params}`),
    '1 b.org. mandatory=alpn alpn="h2,h3" port=443 ipv4hint=192.0.2.1 key672="a"',
  );
  assert.equal(
    text(35, `000a 0014 0155 07 5349502b443255 00 ${hexOf("b.org")}`),
    '10 20 "U" "SIP+D2U" "" b.org.',
  );
  assert.equal(text(4711, ""), "\\# 0");
});

test("data that does not fit its type is shown raw", () => {
  assert.equal(text(1, "c00002"), "\\# 3 c00002");
  assert.equal(text(16, "ff61"), "\\# 2 ff61");
  assert.equal(text(257, "00"), "\\# 1 00");
  assert.equal(text(64, "0001 00 0001 0009 02"), "\\# 8 0001000001000902");
  assert.equal(text(64, "0001 00 0003 0001 02"), "\\# 8 0001000003000102");
});
