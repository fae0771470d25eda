import assert from "node:assert/strict";
import { test } from "node:test";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import fc from "fast-check";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { cidrText, parseCidr, type Cidr } from "#net/address/cidr.ts";
import { atOnce } from "#lib/steps.ts";
import { runs, skipLarge } from "../../../test/support/runs.ts";
import { networksOf, rangeOf } from "./address-ranges.ts";
import { convertRuleSet } from "./convert.ts";
import { dataOf, domainList } from "./contents.ts";
import { textItems, yamlItems } from "./lines.ts";
import { decodeMrs, decodeMrsBody, encodeCidrMrs, encodeDomainMrs } from "./mrs.ts";
import { itemsOf, readRuleSet } from "./read.ts";

const none = () => assert.fail("not classical");

test("text: comments and blank lines count for nothing", () => {
  assert.deepEqual(textItems("# a\n\n  +.a.com \r\n// b\nb.com\n"), ["+.a.com", "b.com"]);
});

test("YAML: plain lists are read line by line, everything else by the general parser, with one result", () => {
  const plain =
    "# head\npayload:\n  - +.a.com\n  - 'b.com'\n  - \"c.com\"\n  - DOMAIN,d.com # why\n  - 2001:db8::/32\n";
  assert.deepEqual(yamlItems(plain), ["+.a.com", "b.com", "c.com", "DOMAIN,d.com", "2001:db8::/32"]);
  assert.deepEqual(yamlItems("{payload: [a.com, '+.b.com']}"), ["a.com", "+.b.com"]);
  assert.deepEqual(yamlItems("rules:\n- a.com\n"), ["a.com"]);
  assert.deepEqual(yamlItems("other: 1\npayload:\n- a.com\n"), ["a.com"]);
  assert.deepEqual(yamlItems("payload:\n- \"a\\u002ecom\"\n- 'it''s'\n"), ["a.com", "it's"]);
  assert.deepEqual(yamlItems("payload:\n- a: b\n- [c]\n"), ['{"a":"b"}', '["c"]'], "left out later on");
  for (const wrong of ["payload: x\n", "a.com\nb.com\n", "[]", "payload:\n- *a\n", ""])
    assert.throws(() => yamlItems(wrong), ConfigError, wrong);
  assert.throws(() => yamlItems("payload:\n  - 'a.com'\n bad\n"), /^ConfigError: not YAML: line 3: /);
});

test("a list in UTF-16 is read where it says so", () => {
  const bytes = Buffer.from("\ufeffpayload:\n- a.com\n- b.com\n", "utf16le");
  for (const list of [bytes, Buffer.from(bytes).swap16()])
    assert.deepEqual(itemsOf(list, "yaml"), ["a.com", "b.com"]);
});

/** What means something in YAML, and what means nothing. */
const odd = fc
  .array(fc.constantFrom(...Array.from("ab'\"#:, \\[]{}&*!|>-+@`%?\t"), "''", " # ", "a.com", "- ", ": "), {
    maxLength: 6,
  })
  .map((parts) => parts.join(""));

test("YAML: an item is the same to both", () => {
  const read = (text: string) => {
    try {
      return yamlItems(text);
    } catch (error) {
      assert.ok(error instanceof ConfigError);
      return "wrong";
    }
  };
  fc.assert(
    fc.property(odd, (item) => {
      const list = `payload:\n  - ${item}\n  - z\n`;
      assert.deepEqual(read(list), read(`other: y\n${list}`)); // which is no plain list
    }),
    { numRuns: runs(2_000) },
  );
});

test(
  "YAML: a plain list may be long and have comments and quotes; of anything else a list is soon too large",
  { skip: skipLarge },
  () => {
    const long = (head: string) => `${head}payload:\n${`  - 'it''s' # ${"x".repeat(80)}\n`.repeat(8_000)}`;
    assert.equal(yamlItems(long("")).length, 8_000);
    assert.throws(() => yamlItems(long("other: y\n")), /too large to be more than a plain list/);
    const keys = Array.from({ length: 30_000 }, (_, at) => `k${at}: y\n`).join("");
    assert.deepEqual(yamlItems(`${keys}payload: [a.com]\n`), ["a.com"]); // not each compared with each
  },
);

test("patterns of names as in the specification; bad ones are left out", () => {
  const { list, skipped } = domainList([
    "a.com",
    "*.b.com",
    ".c.com",
    "+.d.com",
    "e.*.com",
    "*",
    "bad..com",
    "x.",
  ]);
  const data = atOnce(dataOf(list));
  const holds = (host: string) => data.match({ host });
  for (const host of [
    "a.com",
    "x.b.com",
    "x.c.com",
    "x.y.c.com",
    "d.com",
    "x.y.d.com",
    "e.x.com",
    "localhost",
  ])
    assert.equal(holds(host), true, host);
  for (const host of ["x.a.com", "b.com", "x.y.b.com", "c.com", "e.com", "e.x.y.com", "ad.com"])
    assert.equal(holds(host), false, host);
  assert.equal(data.match({}), undefined);
  assert.equal(data.match({ host: null }), false);
  assert.deepEqual([data.size, skipped.count], [6, 2]);
});

const label = fc.stringMatching(/^[a-z0-9-]{1,6}$/);
const pattern = fc
  .tuple(
    fc.constantFrom("", "+.", "."),
    fc.array(fc.oneof(label, fc.constant("*")), { minLength: 1, maxLength: 4 }),
  )
  .map(([lead, labels]) => lead + labels.join("."));

test("MRS: any list of names comes back as it was, but for doubles", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(pattern, { maxLength: 40 }), async (items) => {
      const list = await decodeMrs(await encodeDomainMrs(items));
      const covered = items.filter((item) => !items.includes(`+.${item}`));
      assert.deepEqual(new Set(list.items as string[]), new Set(covered));
      assert.equal(list.count, items.length);
    }),
    { numRuns: runs(30) },
  );
});

const network = fc
  .oneof(
    fc.tuple(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.integer({ min: 0, max: 32 })),
    fc.tuple(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.integer({ min: 0, max: 128 })),
  )
  .map(([bytes, bits]) => ({
    bytes: bytes.map((byte, at) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - at * 8)))),
    bits,
  }));

test("MRS: any list of networks holds the same addresses afterwards", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(network, { maxLength: 20 }), async (cidrs) => {
      const list = await decodeMrs(await encodeCidrMrs(cidrs));
      const after = new CidrTable(list.items as Cidr[]);
      for (const { bytes } of cidrs) assert.ok(after.holds(bytes), String(bytes));
      assert.ok(list.items.length <= cidrs.length * 2 + 1 || cidrs.length === 0);
    }),
    { numRuns: runs(30) },
  );
});

test("ranges become the fewest networks, networks that touch one range", () => {
  const range = (first: string, last: string): string[] => {
    const into: Cidr[] = [];
    const mapped = (text: string) =>
      Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, ...(parseCidr(text) as Cidr).bytes);
    assert.ok(networksOf(mapped(first), mapped(last), into));
    return into.map(cidrText);
  };
  assert.deepEqual(range("10.0.0.0", "10.0.0.255"), ["10.0.0.0/24"]);
  assert.deepEqual(range("10.0.0.1", "10.0.0.6"), [
    "10.0.0.1/32",
    "10.0.0.2/31",
    "10.0.0.4/31",
    "10.0.0.6/32",
  ]);
  assert.deepEqual(range("0.0.0.0", "255.255.255.255"), ["0.0.0.0/0"]);
  assert.equal(networksOf(new Uint8Array(16).fill(1), new Uint8Array(16), []), false);
  const whole: Cidr[] = [];
  assert.ok(networksOf(new Uint8Array(16), new Uint8Array(16).fill(255), whole));
  assert.deepEqual(whole.map(cidrText), ["::/0"]);
  assert.equal(
    rangeOf(["10.0.0.0/25", "10.0.0.128/25", "10.0.1.0/24"].map((text) => parseCidr(text) as Cidr)).length,
    1,
  );
});

test("MRS: every truncation and random bytes are an error, never a hang", async () => {
  const files = [
    await encodeDomainMrs(["+.a.com", "b.*.org", ".c.net"]),
    await encodeCidrMrs([parseCidr("10.0.0.0/8") as Cidr]),
  ];
  for (const file of files) {
    for (let length = 0; length < file.length; length++)
      await assert.rejects(decodeMrs(file.subarray(0, length)), ProtocolError);
    const body = zstdDecompressSync(file);
    for (let length = 0; length < body.length; length++)
      assert.throws(() => decodeMrsBody(body.subarray(0, length)), ProtocolError, String(length));
    fc.assert(
      fc.property(fc.nat(body.length - 1), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        const changed = Buffer.from(body);
        changed[at] = byte;
        try {
          decodeMrsBody(changed);
        } catch (error) {
          assert.ok(error instanceof ProtocolError, String(error));
        }
      }),
      { numRuns: runs(2000) },
    );
  }
  await assert.rejects(decodeMrs(Buffer.from("no zstd")), ProtocolError);
  await assert.rejects(decodeMrs(zstdCompressSync(Buffer.alloc(1 << 20))), /does not begin/);
});

test("MRS: a small file cannot unfold into endless networks or text", { skip: skipLarge }, () => {
  const worst = Buffer.alloc(32);
  worst[15] = 1; // from ::1 to ff…fe: 254 networks
  worst.fill(0xff, 16);
  worst[31] = 0xfe;
  const count = 2500;
  const head = Buffer.from("4d5253010100000000000000010000000000000000010000000000000000", "hex");
  head.writeBigInt64BE(BigInt(count), head.length - 8);
  const body = Buffer.concat([head, ...Array.from({ length: count }, () => worst)]);
  assert.throws(() => decodeMrsBody(body), /too many networks/);
});

test("a list of another kind is refused as a whole", async () => {
  const text = (body: string) => Buffer.from(body);
  await assert.rejects(
    readRuleSet(text("10.0.0.0/8\n"), { behavior: "ipcidr", format: "yaml" }, none),
    ConfigError,
  );
  await assert.rejects(
    readRuleSet(text("hello world\n"), { behavior: "domain", format: "text" }, none),
    /none of its 1 items/,
  );
  await assert.rejects(readRuleSet(text("<html>"), { behavior: "domain", format: "text" }, none), /HTML/);
  const mrs = await encodeDomainMrs(["a.com"]);
  await assert.rejects(
    readRuleSet(mrs, { behavior: "ipcidr", format: "mrs" }, none),
    /holds behavior domain/,
  );
});

test("convert-ruleset: into MRS and back", async () => {
  const { bytes, items, skipped } = await convertRuleSet(
    Buffer.from("+.A.com\nb.com\nbad..x\n"),
    "domain",
    "text",
  );
  assert.deepEqual([items, skipped], [2, 1]);
  const back = await convertRuleSet(bytes, "domain", "mrs");
  assert.deepEqual(back.bytes.toString().trim().split("\n").sort(), ["+.a.com", "b.com"]);
  await assert.rejects(convertRuleSet(bytes, "ipcidr", "mrs"), /holds behavior domain/);
  await assert.rejects(convertRuleSet(Buffer.from("\n"), "domain", "text"), ConfigError);
});
