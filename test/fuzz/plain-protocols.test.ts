/** Hostile bytes for everything that the plain protocols decode. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { parseAuthority, parseConnectTarget, parsePlainTarget } from "#protocols/http/authority.ts";
import { parseBasic } from "#protocols/http/credentials.ts";
import { decodeConnect, decodeHead, decodeStatus } from "#protocols/http/head.ts";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { socks5 } from "#protocols/socks/index.ts";
import * as wire from "#protocols/socks/wire.ts";
import { parseTarget } from "#protocols/tunnel/index.ts";
import { directAccept, directDialer } from "../support/direct-accept.ts";
import { openTestInbound, openTestOutbound } from "../support/inbound-env.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { openRawClient, say } from "../support/raw-client.ts";
import { urlText } from "../support/url-texts.ts";

type AnyDecoder = (bytes: Buffer, seen: number) => Decoded<unknown> | null;

interface Target {
  readonly decode: AnyDecoder;
  /** What good messages begin with, so that random bytes get past the first check. */
  readonly prefixes: readonly string[];
  /** May it decide without taking anything? */
  readonly peeks?: true;
}

const TARGETS: Readonly<Record<string, Target>> = {
  greeting: { decode: wire.decodeGreeting, prefixes: ["\x05", "\x05\x02"] },
  choice: { decode: wire.decodeChoice, prefixes: ["\x05"] },
  credentials: { decode: wire.decodeCredentials, prefixes: ["\x01", "\x01\x03abc"] },
  verdict: { decode: wire.decodeVerdict, prefixes: ["\x01"] },
  request: { decode: wire.decodeRequest, prefixes: ["\x05\x01\0\x01", "\x05\x01\0\x03", "\x05\x03\0\x04"] },
  reply: { decode: wire.decodeReply, prefixes: ["\x05\0\0\x01", "\x05\0\0\x03", "\x05\0\0\x04", "\x05\x01"] },
  request4: { decode: wire.decodeRequest4, prefixes: ["\x04\x01\0P\0\0\0\x01", "\x04\x01"] },
  head: { decode: decodeHead, prefixes: ["GET / HTTP/1.1\r\n", "A\r\nB: c\r\n"] },
  connect: { decode: decodeConnect, prefixes: ["CONNECT ", "CONNECT a:1 HTTP/1.1\r\n"], peeks: true },
  status: { decode: decodeStatus, prefixes: ["HTTP/1.1 200 OK\r\n", "HTTP/1."] },
};

/** Random bytes, often with the marks that the decoders look for. */
const noise = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom("\r\n", "\r\n\r\n", "\n", "\0", ":", " ", "Host: a\r\n", "\x01", "\xff")
        .map((text) => Buffer.from(text, "latin1")),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts));

function attempt(decode: AnyDecoder, bytes: Buffer, seen: number): Decoded<unknown> | null | "refused" {
  try {
    return decode(bytes, seen);
  } catch (error) {
    assert.equal(error instanceof ProtocolError, true, String(error));
    return "refused";
  }
}

for (const [name, { decode, prefixes, peeks }] of Object.entries(TARGETS)) {
  test(`${name}: waits, refuses or takes some of any bytes, the same however they are split`, () => {
    const property = fc.property(fc.constantFrom("", ...prefixes), noise, (prefix, rest) => {
      const bytes = Buffer.concat([Buffer.from(prefix, "latin1"), rest]);
      const all = attempt(decode, bytes, 0);
      if (all !== null && all !== "refused") {
        assert.equal(all.size <= bytes.length, true);
        assert.equal(all.size > 0 || peeks === true, true);
      }
      // Byte by byte the first decision is final; it may come earlier than with all bytes at hand, never otherwise.
      let seen = 0;
      for (let size = 1; size <= bytes.length; size++) {
        const part = attempt(decode, bytes.subarray(0, size), seen);
        seen = size;
        if (part === null) continue;
        if (part === "refused") assert.equal(all, "refused");
        else if (name !== "reply") assert.deepEqual(part, all);
        return;
      }
      assert.equal(all, null);
    });
    fc.assert(property, { numRuns: 500 });
  });
}

test("datagrams: decoded or dropped", () => {
  const property = fc.property(
    fc.constantFrom("", "\0\0\0\x01", "\0\0\0\x03", "\0\0\0\x04"),
    noise,
    (prefix, rest) => {
      const item = wire.decodeDatagram(Buffer.concat([Buffer.from(prefix, "latin1"), rest]));
      assert.equal(item === null || item.payload.length <= rest.length, true);
    },
  );
  fc.assert(property, { numRuns: 1000 });
});

test("texts: parsed or null", () => {
  const text = fc.oneof(
    fc.string(),
    urlText,
    fc.domain(),
    fc.ipV6().map((ip) => `[${ip}]:1`),
  );
  const property = fc.property(text, (value) => {
    parseBasic(`Basic ${value}`);
    for (const found of [parseAuthority(value, 80), parseConnectTarget(value), parseTarget(value)])
      if (found !== null) assert.equal((found.host === null) !== (found.ip === null), true);
    const target = parsePlainTarget(value, "GET");
    if (target !== null) assert.match(target.path, /^\/[^\0-\x20\x7f]*$/);
  });
  fc.assert(property, { numRuns: 1000 });
});

const SPLIT_RUNS = 80;

test("a listener meets random bytes: it closes, and serves the next client", async () => {
  await using origin = await openTcpOrigin((socket) => socket.end("fine"));
  const { accept } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  const starts = [
    "",
    "\x05\x01\0",
    "\x05\x01\0\x05\x01\0\x03",
    "\x04\x01",
    "CONNECT a:1 HTTP/1.1\r\n",
    "GET http://a/ HTTP/1.1\r\n",
  ];
  const property = fc.asyncProperty(
    fc.constantFrom(...starts),
    noise,
    fc.nat(20),
    async (start, rest, cut) => {
      using client = await openRawClient(proxy.port);
      const bytes = Buffer.concat([Buffer.from(start, "latin1"), rest]);
      client.send(bytes.subarray(0, cut));
      await new Promise(setImmediate);
      client.socket.end(bytes.subarray(cut));
      await client.rest();
    },
  );
  await fc.assert(property, { numRuns: SPLIT_RUNS });
  assert.match(await say(proxy.port, `CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\n`), /fine$/);
});

test("an origin answers random bytes: the client gets an answer or an end", async () => {
  let answer: Buffer = Buffer.alloc(0);
  await using origin = await openTcpOrigin((socket) => socket.once("data", () => socket.end(answer)));
  await using proxy = await openTestInbound(http, {}, { accept: directAccept().accept });
  const starts = [
    "",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 101 X\r\nUpgrade: y\r\n\r\n",
    "HTTP/1.1 103 X\r\n",
  ];
  const property = fc.asyncProperty(
    fc.constantFrom(...starts),
    noise,
    fc.boolean(),
    async (start, rest, upgrade) => {
      answer = Buffer.concat([Buffer.from(start, "latin1"), rest]);
      const fields = upgrade ? "Connection: Upgrade\r\nUpgrade: y" : "Connection: close";
      using client = await openRawClient(proxy.port);
      client.send(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n${fields}\r\n\r\n`);
      client.socket.once("end", () => client.socket.end());
      await client.rest();
    },
  );
  await fc.assert(property, { numRuns: SPLIT_RUNS });
});

test("a proxy answers random bytes: the dial fails or is done, and nothing else happens", async () => {
  let answer: Buffer = Buffer.alloc(0);
  await using proxy = await openTcpOrigin((socket) => socket.once("data", () => socket.end(answer)));
  const starts = ["", "\x05\0", "\x05\0\x05\0\0\x03", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 C\r\n\r\n"];
  const outs = await Promise.all(
    [http, socks5].map((kind) =>
      openTestOutbound(kind, { server: "127.0.0.1", port: proxy.port }, directDialer),
    ),
  );
  const property = fc.asyncProperty(
    fc.constantFrom(...starts),
    noise,
    fc.constantFrom(...outs),
    async (start, rest, out) => {
      answer = Buffer.concat([Buffer.from(start, "latin1"), rest]);
      try {
        const context = { signal: new AbortController().signal, metadata: null };
        const stream = await out.connect({ host: "a.test", ip: null, port: 1 }, context);
        stream.on("error", () => {}).resume();
        if (!stream.readableEnded) await once(stream, "end");
        stream.destroy();
      } catch (error) {
        assert.equal(error instanceof DialError, true, String(error));
      }
    },
  );
  await fc.assert(property, { numRuns: SPLIT_RUNS });
});
