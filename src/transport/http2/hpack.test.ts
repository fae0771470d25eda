import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Http2Stream, performServerHandshake } from "node:http2";
import { duplexPair, type Duplex } from "node:stream";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { Field } from "#transport/http-fields/section.ts";
import { runs } from "../../../test/support/runs.ts";
import * as http2 from "./frames.ts";
import { STATIC_FIELDS } from "./hpack-table.ts";
import { encodeSection, SectionDecoder } from "./hpack.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

/** Sections of one connection, in order, and the fields of each (RFC 7541 appendix C). */
const get = (scheme: string, path: string, ...more: readonly Field[]): readonly Field[] => [
  [":method", "GET"],
  [":scheme", scheme],
  [":path", path],
  [":authority", "www.example.com"],
  ...more,
];
const REQUESTS = [
  get("http", "/"),
  get("http", "/", ["cache-control", "no-cache"]),
  get("https", "/index.html", ["custom-key", "custom-value"]),
];
const answer = (status: string, second: string, ...more: readonly Field[]): readonly Field[] => [
  [":status", status],
  ["cache-control", "private"],
  ["date", `Mon, 21 Oct 2013 20:13:${second} GMT`],
  ["location", "https://www.example.com"],
  ...more,
];
const COOKIE = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
const ANSWERS = [
  answer("302", "21"),
  answer("307", "21"),
  answer("200", "22", ["content-encoding", "gzip"], ["set-cookie", COOKIE]),
];
/** The examples have tables of 256 bytes. */
const SMALL_TABLE = "3fe101";
const PUBLISHED: readonly (readonly [string, readonly string[], readonly (readonly Field[])[]])[] = [
  [
    "C.3: requests as they are",
    [
      "828684410f7777772e6578616d706c652e636f6d",
      "828684be58086e6f2d6361636865",
      "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ],
    REQUESTS,
  ],
  [
    "C.4: requests by Huffman",
    [
      "828684418cf1e3c2e5f23a6ba0ab90f4ff",
      "828684be5886a8eb10649cbf",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ],
    REQUESTS,
  ],
  [
    "C.5: answers as they are",
    [
      `${SMALL_TABLE}4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54` +
        "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
      "4803333037c1c0bf",
      "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b" +
        "48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ],
    ANSWERS,
  ],
  [
    "C.6: answers by Huffman",
    [
      `${SMALL_TABLE}488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b` +
        "97c8e9ae82ae43d3",
      "4883640effc1c0bf",
      "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af" +
        "27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ],
    ANSWERS,
  ],
];

const decoded = (...sections: readonly string[]) => {
  const decoder = new SectionDecoder();
  return sections.map((section) => decoder.decode(hex(section)));
};
const refused = (why: string, ...sections: readonly string[]) =>
  assert.throws(() => decoded(...sections), ProtocolError, why);

describe("sections of HPACK", () => {
  for (const [what, sections, fields] of PUBLISHED)
    test(`published: ${what}`, () => assert.deepEqual(decoded(...sections), fields));

  test("C.2: literals of all kinds", () => {
    const custom = "400a637573746f6d2d6b65790d637573746f6d2d686561646572";
    assert.deepEqual(decoded(custom, "be"), [
      [["custom-key", "custom-header"]],
      [["custom-key", "custom-header"]],
    ]);
    assert.deepEqual(decoded("040c2f73616d706c652f70617468"), [[[":path", "/sample/path"]]]);
    assert.deepEqual(decoded("100870617373776f726406736563726574"), [[["password", "secret"]]]);
    refused("what is not kept is not in the table", "040c2f73616d706c652f70617468be");
    refused("nor what is never to be", "100870617373776f726406736563726574be");
  });

  test("the fields that both sides know", () => {
    assert.equal(STATIC_FIELDS.length, 61);
    assert.deepEqual(decoded("81", "88", "bd"), [
      [[":authority", ""]],
      [[":status", "200"]],
      [["www-authenticate", ""]],
    ]);
  });

  test("numbers that are in no table", () => {
    refused("0", "80");
    refused("a literal by 0 has a name", "40");
    refused("the table is empty", "be");
    refused("behind the latest", "400161016201", "be", "bf");
    refused("a name behind the latest", "7f000161"); // 63
    refused("far behind", "ffffffffff07");
    refused("a number without an end", "ffffffffffff7f");
  });

  test("the table holds what it may, the latest first", () => {
    const kept = (name: string, bytes: number) => {
      const size = bytes - 33;
      const length = size < 127 ? Buffer.of(size).toString("hex") : `7f${varint(size - 127)}`;
      return `4001${Buffer.from(name).toString("hex")}${length}${"78".repeat(size)}`;
    };
    const names = (section: string, ...before: readonly string[]) =>
      decoded(...before, section)
        .at(-1)
        ?.map(([name]) => name);
    const full = [kept("a", 2048), kept("b", 2048)];
    assert.deepEqual(names("bebf", ...full), ["b", "a"]);
    refused("one more drives the oldest out", ...full, kept("c", 33), "c0");
    assert.deepEqual(names("bebf", ...full, kept("c", 33)), ["c", "b"]);
    refused("one that is larger than all empties it", ...full, kept("c", 4097), "be");
    assert.deepEqual(names("bebf", ...full, kept("c", 4097), kept("a", 40), kept("b", 40)), ["b", "a"]);
    assert.deepEqual(names("be", ...full, "3fe10f"), ["b"]); // 2048 + 31 - 31
    refused("a table of nothing", ...full, "20", "be");
    assert.deepEqual(names("be", ...full, "203fe11f", kept("c", 4096)), ["c"]);
  });

  test("the table is at most 4096 bytes, and its size stands in front of all fields", () => {
    assert.deepEqual(decoded("3fe11f88"), [[[":status", "200"]]]); // 4096
    refused("4097", "3fe21f88");
    refused("a size behind a field", "8820");
  });

  test("texts and fields have bounds", () => {
    const value = (section: string) => decoded(section)[0]?.[0]?.[1].length;
    const named = (bytes: number) => `0001617f${varint(bytes - 127)}${"78".repeat(bytes)}`;
    assert.equal(value(named(16_384)), 16_384);
    refused("a text of more", named(16_385));
    refused("a text that is cut short", named(200).slice(0, -2));
    refused("a text that is not Huffman's", "00016181fe00");
    assert.equal(decoded("88".repeat(128))[0]?.length, 128);
    refused("more fields", "88".repeat(129));
  });

  test("what we say stands by itself", () => {
    const fields: readonly Field[] = [
      [":method", "POST"],
      [":path", "/GunService/Tun"],
      ["te", "trailers"],
      ["x-long", "y".repeat(5_000)],
    ];
    const decoder = new SectionDecoder();
    for (const isFirst of [true, false, false]) {
      const section = encodeSection(fields, isFirst);
      assert.equal(section[0] === 0x20, isFirst);
      assert.deepEqual(decoder.decode(section), fields);
      assert.deepEqual(new SectionDecoder().decode(section), fields);
    }
  });

  test("what node:http2 says is heard as it was said", { timeout: 60_000 }, async () => {
    const name = fc.stringMatching(/^x-[a-z0-9-]{1,30}$/);
    const value = fc.oneof(fc.stringMatching(/^[!-~]{1,60}$/), fc.stringMatching(/^[!-~]{1000,1500}$/));
    const headers = fc.dictionary(name, value, { maxKeys: 8 });
    const again = fc.array(headers, { minLength: 1, maxLength: 5 });
    const property = fc.asyncProperty(again, fc.integer({ min: 1, max: 3 }), async (some, rounds) => {
      const [near, far] = duplexPair();
      const [up, down] = [sectionsOf(near), sectionsOf(far)];
      const asked: Field[][] = [];
      const answered: Field[][] = [];
      const server = performServerHandshake(far);
      server.on("stream", (stream: Http2Stream, _headers, _flags, raw: string[]) => {
        asked.push(pairs(raw));
        (stream as unknown as { respond(h: object, o: object): void }).respond(some[0] ?? {}, {
          endStream: true,
        });
      });
      const client = connect("http://some.test", { createConnection: () => near });
      for (const one of Array.from({ length: rounds }, () => some).flat()) {
        const stream = client.request(one);
        const [, , raw] = (await once(stream, "response")) as [object, number, string[]];
        answered.push(pairs(raw));
      }
      client.destroy();
      server.destroy();
      assert.deepEqual(up(), asked);
      assert.deepEqual(down(), answered);
      assert.ok(asked.length > 0);
    });
    await fc.assert(property, { numRuns: runs(60) });
  });

  test("hostile bytes are refused, and nothing else", () => {
    const property = fc.property(
      fc.array(fc.uint8Array({ maxLength: 120 }), { maxLength: 6 }),
      (sections) => {
        const decoder = new SectionDecoder();
        try {
          for (const section of sections) decoder.decode(section);
        } catch (error) {
          assert.ok(error instanceof ProtocolError, String(error));
        }
      },
    );
    fc.assert(property, { numRuns: runs(3_000) });
  });
});

/** What of a number is behind its first byte. */
function varint(value: number): string {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left >>>= 7) bytes.push((left & 127) | 128);
  return Buffer.from([...bytes, left]).toString("hex");
}

function pairs(raw: readonly string[]): Field[] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at] ?? "", raw[2 * at + 1] ?? ""]);
}

/** Of all that is written there, decoded in the end. */
function sectionsOf(stream: Duplex): () => readonly (readonly Field[])[] {
  const written: Buffer[] = [];
  const write = stream._write.bind(stream);
  stream._write = (chunk: Buffer, encoding, callback) => {
    written.push(Buffer.from(chunk));
    write(chunk, encoding, callback);
  };
  return () => {
    let bytes = Buffer.concat(written);
    if (bytes.subarray(0, 24).equals(http2.CLIENT_PREFACE)) bytes = bytes.subarray(24);
    const decoder = new SectionDecoder();
    const sections: (readonly Field[])[] = [];
    let section: Buffer[] = [];
    for (let at = 0; at < bytes.length;) {
      const [length, type, flags] = [
        bytes.readUIntBE(at, 3),
        bytes.readUInt8(at + 3),
        bytes.readUInt8(at + 4),
      ];
      const payload = bytes.subarray(at + 9, at + 9 + length);
      at += 9 + length;
      if (type !== http2.HEADERS && type !== http2.CONTINUATION) continue;
      assert.equal(flags & http2.PADDED, 0);
      const isOrdered = type === http2.HEADERS && (flags & http2.PRIORITY) !== 0;
      section.push(isOrdered ? payload.subarray(5) : payload);
      if ((flags & http2.END_HEADERS) === 0) continue;
      sections.push(decoder.decode(Buffer.concat(section)));
      section = [];
    }
    return sections;
  };
}
