import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { MuxCodec } from "./mux-codec.ts";
import { obfsHttpClient } from "./obfs-http.ts";
import { obfsTlsClient } from "./obfs-tls.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

function collect(codec: StreamCodec, wire: Buffer): string {
  let text = "";
  codec.open(wire, (plain) => (text += plain === null ? "|" : plain.toString()));
  return text;
}

const HTTP_ANSWER = Buffer.from(
  "HTTP/1.1 101 Switching Protocols\r\nServer: nginx/1.9.1\r\nUpgrade: websocket\r\n\r\nhello",
);
const TLS_ANSWER = Buffer.concat([
  Buffer.alloc(96 + 6),
  hex("160303 0003"),
  Buffer.from("hel"),
  hex("170303 0002"),
  Buffer.from("lo"),
]);
const MUX_ANSWER = Buffer.concat([
  hex("0004 0001 02 01 0003"),
  Buffer.from("hel"),
  hex("0004 0001 04 00"), // keep-alive
  hex("0004 0009 02 01 0001 78"), // a session that is not ours
  hex("0004 0001 02 01 0002"),
  Buffer.from("lo"),
]);
const CODECS: Readonly<Record<string, { make: () => StreamCodec; answer: Buffer }>> = {
  "obfs http": { make: () => obfsHttpClient("example.com"), answer: HTTP_ANSWER },
  "obfs tls": { make: () => obfsTlsClient("example.com"), answer: TLS_ANSWER },
  mux: { make: () => new MuxCodec(), answer: MUX_ANSWER },
};

for (const [name, { make, answer }] of Object.entries(CODECS))
  describe(name, () => {
    test("answers whole and byte by byte; truncations wait", () => {
      assert.equal(collect(make(), answer), "hello");
      const codec = make();
      let text = "";
      for (const byte of answer) text += collect(codec, Buffer.from([byte]));
      assert.equal(text, "hello");
      codec.openEnd();
      for (let size = 0; size < answer.length; size++) {
        const got = collect(make(), answer.subarray(0, size));
        assert.ok("hello".startsWith(got));
      }
    });

    test("noise: bytes, a wait or ProtocolError", () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 400 }), (noise) => {
          try {
            collect(make(), Buffer.from(noise));
          } catch (error) {
            assert.ok(error instanceof ProtocolError);
          }
        }),
      );
    });

    test("the opening is sent once, with the first payload or with the end", () => {
      const codec = make();
      const first = codec.seal(Buffer.from("GET"));
      assert.ok(first.includes("GET"));
      assert.ok(codec.seal(Buffer.from("more")).length < 30);
      assert.ok((make().sealEnd() as Buffer).length > 10);
    });
  });

test("obfs http: a head without an end is refused, not kept", () => {
  const codec = obfsHttpClient("example.com");
  assert.throws(() => {
    for (let round = 0; round < 100; round++) collect(codec, Buffer.alloc(1000, "x"));
  }, ProtocolError);
});

test("obfs tls: the hello is 5 + 212 + payload + host bytes, its first extension holds the payload", () => {
  const hello = obfsTlsClient("bing.com").seal(Buffer.from("payload"));
  assert.equal(hello.readUInt16BE(3), 212 + 7 + 8);
  assert.equal(hello.length, 5 + hello.readUInt16BE(3));
  assert.deepEqual(hello.subarray(138, 149), Buffer.concat([hex("0023 0007"), Buffer.from("payload")]));
  const long = obfsTlsClient("bing.com").seal(Buffer.alloc(40_000));
  assert.equal(long.length, 5 + 212 + 8 + 8192 + (5 + 16384) + (5 + 40_000 - 8192 - 16384));
});

test("mux: New without data, then Keep frames of at most 8192 bytes, End", () => {
  const codec = new MuxCodec();
  const bytes = codec.seal(Buffer.alloc(10_000));
  const opening = hex("000c 0001 01 00 01 0000 01 7f000001");
  assert.deepEqual(bytes.subarray(0, opening.length), opening);
  assert.equal(bytes.length, opening.length + 8 + 8192 + 8 + 10_000 - 8192);
  assert.deepEqual(codec.sealEnd(), hex("0004 0001 03 00"));
  assert.equal(collect(codec, hex("0004 0001 03 00")), "|");
});
