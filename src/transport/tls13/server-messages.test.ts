/** What a server may not say in the messages of its flight, and the alert that it gets for each. */
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { begin, certificate, outcome } from "../../../test/support/tls13-client.ts";
import { FLIGHT, type Flight, type Part, sealFlight } from "../../../test/support/tls13-server.ts";
import { encodeCertificate } from "./certificate-messages.ts";
import { encodeExtension, encodeProtocols } from "./extensions.ts";
import { encodeMessage, MESSAGE } from "./handshake-messages.ts";
import { decodeServerHello, encodeServerHello, type ServerHelloFields } from "./hello-messages.ts";
import { plainRecord, RECORD } from "./records.ts";
import { signTranscript } from "./signatures.ts";
import { numbers16, u16, vector16, vector24, vector8 } from "./wire.ts";

const NOTHING = Buffer.alloc(0);
const DER = new X509Certificate(certificate.cert).raw;
/** Where the compression stands in a ServerHello with a session id of 32 bytes. */
const COMPRESSION_AT = 4 + 2 + 32 + 1 + 32 + 2;

/** What comes of a good flight in which one message is another. */
function withPart(part: Part, make: (flight: Flight) => Buffer): string | null {
  const { connection, flight } = begin();
  const parts = { ...flight.parts, [part]: make(flight) };
  return outcome(connection, sealFlight({ ...flight, parts }));
}

/** The same with messages in front of one of the flight, sealed as their place asks for. */
function before(part: Part, ...messages: readonly Buffer[]): string | null {
  const { connection, flight } = begin();
  const at = FLIGHT.indexOf(part);
  const open = plainRecord(RECORD.handshake, flight.parts.hello);
  const sealed = [...FLIGHT.slice(1, at).map((one) => flight.parts[one]), ...messages].map((message) =>
    flight.handshake.seal(RECORD.handshake, message),
  );
  return outcome(connection, Buffer.concat([open, ...sealed]));
}

const hello = (change: (good: ServerHelloFields & { extensions: ReadonlyMap<number, Buffer> }) => object) =>
  withPart("hello", ({ parts }) => {
    const good = decodeServerHello(parts.hello.subarray(4));
    return encodeServerHello({ ...good, ...change(good) });
  });
const helloWith = (type: number, body: Buffer) =>
  hello(({ extensions }) => ({ extensions: new Map([...extensions, [type, body]]) }));

test("ServerHello: fields that were not offered", () => {
  assert.equal(
    hello(() => ({ sessionId: Buffer.alloc(32, 1) })),
    "illegal_parameter",
  );
  assert.equal(
    hello(() => ({ sessionId: NOTHING })),
    "illegal_parameter",
  );
  assert.equal(
    hello(() => ({ sessionId: Buffer.alloc(33) })),
    "decode_error",
  );
  for (const suite of [0x1304, 0x1305, 0x0a0a, 0])
    assert.equal(
      hello(() => ({ suite })),
      "illegal_parameter",
      String(suite),
    );
  assert.equal(
    hello(() => ({ suite: 0xc02f })),
    "illegal_parameter",
    "offered, and not one of TLS 1.3",
  );
});

test("ServerHello: versions and compression", () => {
  const edited = (at: number, value: number) =>
    withPart("hello", ({ parts }) => {
      const message = Buffer.from(parts.hello);
      message[at] = value;
      return message;
    });
  assert.equal(edited(COMPRESSION_AT, 1), "illegal_parameter");
  assert.equal(edited(5, 4), "illegal_parameter", "TLS 1.3 where TLS 1.2 is to be said");
  assert.equal(helloWith(43, u16(0x0305)), "protocol_version");
  assert.equal(helloWith(43, u16(0x0302)), "protocol_version", "Chrome does not offer it");
  assert.equal(helloWith(43, Buffer.of(3)), "decode_error");
  assert.equal(helloWith(43, Buffer.of(3, 4, 0)), "decode_error");
});

test("ServerHello: shares and extensions", () => {
  assert.equal(
    hello(({ extensions }) => ({ extensions: without(extensions, 51) })),
    "missing_extension",
  );
  const share = (group: number, key: Buffer) => helloWith(51, Buffer.concat([u16(group), vector16(key)]));
  assert.equal(share(0x17, Buffer.alloc(65, 4)), "illegal_parameter", "offered without a share");
  assert.equal(share(0x0100, Buffer.alloc(32, 4)), "illegal_parameter", "not offered");
  assert.equal(share(0x1d, Buffer.alloc(31, 4)), "illegal_parameter");
  assert.equal(share(0x1d, Buffer.alloc(32)), "illegal_parameter", "a point of small order");
  assert.equal(share(0x11ec, Buffer.alloc(1120)), "illegal_parameter", "an X25519 half of small order");
  assert.equal(share(0x11ec, Buffer.alloc(1119, 9)), "illegal_parameter");
  assert.equal(share(0x1d, NOTHING), "decode_error");
  assert.equal(helloWith(0x1234, NOTHING), "unsupported_extension");
  assert.equal(helloWith(16, encodeProtocols(["h2"])), "illegal_parameter", "its place is another message");
  assert.equal(helloWith(44, vector16(Buffer.of(1))), "unsupported_extension", "a cookie");
  assert.equal(helloWith(41, u16(0)), "unsupported_extension", "no session was shown");
  const twice = withPart("hello", ({ parts }) => {
    const body = parts.hello.subarray(4);
    const more = encodeExtension(43, u16(0x0304));
    const message = Buffer.concat([parts.hello.subarray(0, 4), body, more]);
    message.writeUInt16BE(message.readUInt16BE(COMPRESSION_AT + 1) + more.length, COMPRESSION_AT + 1);
    message.writeUIntBE(message.length - 4, 1, 3);
    return message;
  });
  assert.equal(twice, "illegal_parameter");
});

function without(extensions: ReadonlyMap<number, Buffer>, type: number): ReadonlyMap<number, Buffer> {
  return new Map([...extensions].filter(([one]) => one !== type));
}

test("EncryptedExtensions: what was not offered, what belongs elsewhere, what is no answer", () => {
  const say = (...extensions: readonly Buffer[]) =>
    withPart("extensions", () => encodeMessage(MESSAGE.encryptedExtensions, vector16(...extensions)));
  assert.equal(say(encodeExtension(0x1234)), "unsupported_extension");
  assert.equal(say(encodeExtension(28, u16(0x4001))), "unsupported_extension", "Chrome sets no limit");
  for (const type of [51, 43, 13, 27]) assert.equal(say(encodeExtension(type)), "illegal_parameter");
  assert.equal(say(encodeExtension(16, encodeProtocols(["h3"]))), "illegal_parameter");
  assert.equal(say(encodeExtension(16, encodeProtocols(["h2", "http/1.1"]))), "decode_error");
  assert.equal(say(encodeExtension(16, vector16())), "decode_error");
  assert.equal(say(encodeExtension(0), encodeExtension(0)), "illegal_parameter");
  assert.equal(say(encodeExtension(17613, NOTHING)), "illegal_parameter", "settings of no protocol");
  const empty = withPart("extensions", () => encodeMessage(MESSAGE.encryptedExtensions));
  assert.equal(empty, "decode_error");
});

test("Certificate: a context, no certificate, none that can be read, extensions that were not offered", () => {
  const list = (...entries: readonly Buffer[]) =>
    withPart("certificate", () => encodeMessage(MESSAGE.certificate, vector8(), vector24(...entries)));
  const entry = (der: Buffer, ...extensions: readonly Buffer[]) =>
    Buffer.concat([vector24(der), vector16(...extensions)]);
  const named = withPart("certificate", () => encodeCertificate(Buffer.of(1), [DER]));
  assert.equal(named, "illegal_parameter");
  assert.equal(list(), "decode_error");
  assert.equal(list(entry(NOTHING)), "decode_error");
  assert.equal(list(entry(Buffer.alloc(100, 0x30))), "bad_certificate");
  assert.equal(list(...Array<Buffer>(17).fill(entry(DER))), "bad_certificate", "a chain that is too long");
  assert.equal(list(entry(DER, encodeExtension(0x1234))), "unsupported_extension");
  assert.equal(list(entry(DER, encodeExtension(34))), "unsupported_extension", "Chrome takes no delegation");
  assert.equal(list(entry(DER, encodeExtension(5), encodeExtension(5))), "illegal_parameter");
  const stapled = list(entry(DER, encodeExtension(5, Buffer.from("0100000130", "hex"))));
  assert.equal(stapled, "decrypt_error", "it may stand there: only the signature does not cover it");
});

test("a compressed certificate: an algorithm that was not offered, sizes, garbage", () => {
  const body = encodeCertificate(NOTHING, [DER]).subarray(4);
  const u24 = (value: number): Buffer => Buffer.of(value >> 16, (value >> 8) & 0xff, value & 0xff);
  const packed = (algorithm: number, size: number, bytes: Buffer) =>
    encodeMessage(MESSAGE.compressedCertificate, u16(algorithm), u24(size), vector24(bytes));
  const deflated = deflateSync(body);
  const say = (message: Buffer) => withPart("certificate", () => message);
  assert.equal(say(packed(1, body.length, deflated)), "illegal_parameter", "Chrome takes brotli alone");
  assert.equal(say(packed(2, body.length, deflated)), "bad_certificate");
  assert.equal(say(packed(2, 0, deflated)), "bad_certificate");
  assert.equal(say(packed(2, 0xff_ffff, deflated)), "bad_certificate");
  assert.equal(say(packed(2, body.length, NOTHING)), "decode_error");
});

const REQUEST = encodeMessage(
  MESSAGE.certificateRequest,
  vector8(),
  vector16(encodeExtension(13, vector16(numbers16([0x0403])))),
);

test("CertificateRequest: twice, at another place, without what it needs", () => {
  assert.equal(before("certificate", REQUEST), null);
  assert.equal(before("certificate", REQUEST, REQUEST), "unexpected_message");
  for (const part of ["extensions", "verify", "finished"] as const)
    assert.equal(before(part, REQUEST), "unexpected_message", part);
  const say = (...body: readonly Buffer[]) =>
    before("certificate", encodeMessage(MESSAGE.certificateRequest, ...body));
  assert.equal(say(vector8(), vector16()), "missing_extension");
  assert.equal(say(vector8(Buffer.of(1)), REQUEST.subarray(5)), "illegal_parameter");
  assert.equal(say(vector8()), "decode_error");
  for (let size = 0; size < REQUEST.length - 4; size++)
    assert.equal(say(REQUEST.subarray(4, 4 + size)), "decode_error", `${size} bytes`);
});

test("messages that are none of the handshake, in front of each", () => {
  const others = {
    "hello request": 0,
    "client hello": 1,
    "session ticket": 4,
    "end of early data": 5,
    "key exchange": 12,
    "hello done": 14,
    "key update": 24,
    "message hash": 254,
  };
  for (const [name, type] of Object.entries(others))
    for (const part of FLIGHT.slice(1)) {
      const message = encodeMessage(type, Buffer.of(0));
      assert.equal(before(part, message), "unexpected_message", `${name} in front of ${part}`);
    }
});

test("Finished: every byte of it counts", () => {
  for (let at = 4; at < 36; at++) {
    const said = withPart("finished", ({ parts }) => {
      const message = Buffer.from(parts.finished);
      message[at] = (message[at] ?? 0) ^ 1;
      return message;
    });
    assert.equal(said, "decrypt_error", `byte ${at}`);
  }
  assert.equal(
    withPart("finished", () => encodeMessage(MESSAGE.finished)),
    "decode_error",
  );
  assert.equal(
    withPart("finished", () => encodeMessage(MESSAGE.finished, Buffer.alloc(48))),
    "decode_error",
  );
});

test("CertificateVerify: schemes that TLS 1.3 does not know, the signature of a client, of other messages, none", () => {
  const scheme = (id: number) =>
    withPart("verify", ({ parts }) => {
      const message = Buffer.from(parts.verify);
      message.writeUInt16BE(id, 4);
      return message;
    });
  for (const id of [0x0401, 0x0201, 0x0203, 0x0503, 0x0804, 0x0807, 0])
    assert.equal(scheme(id), "illegal_parameter", id.toString(16));
  const key = createPrivateKey(certificate.key);
  for (const signer of ["client", "server"] as const) {
    const { signature } = signTranscript(key, [0x0403], signer, Buffer.alloc(32, 1)) ?? assert.fail();
    const message = encodeMessage(MESSAGE.certificateVerify, u16(0x0403), vector16(signature));
    assert.equal(
      withPart("verify", () => message),
      "decrypt_error",
      signer,
    );
  }
  const empty = encodeMessage(MESSAGE.certificateVerify, u16(0x0403), vector16());
  assert.equal(
    withPart("verify", () => empty),
    "decrypt_error",
  );
});

test("cut at every byte, with the length said to be right: decode_error, or as if TLS 1.3 was not meant", () => {
  for (const part of FLIGHT) {
    const whole = begin().flight.parts[part].length;
    for (let size = 4; size < whole; size++) {
      const said = withPart(part, ({ parts }) => {
        const cut = Buffer.from(parts[part].subarray(0, Math.min(size, parts[part].length - 1))); // signatures vary
        cut.writeUIntBE(cut.length - 4, 1, 3);
        return cut;
      });
      // Without extensions it is the ServerHello of an older version.
      const isOlder = part === "hello" && size === COMPRESSION_AT + 1;
      assert.equal(said, isOlder ? "protocol_version" : "decode_error", `${part} of ${size} bytes`);
    }
  }
});
