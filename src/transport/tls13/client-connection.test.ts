import assert from "node:assert/strict";
import { test } from "node:test";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { begin, certificate, outcome } from "../../../test/support/tls13-client.ts";
import { connection13 } from "../../../test/support/tls13-dial.ts";
import {
  answerHello,
  FLIGHT,
  type Flight,
  type Part,
  sealFlight,
} from "../../../test/support/tls13-server.ts";
import { encodeServerHello, RETRY_RANDOM } from "./hello-messages.ts";
import { plainRecord, RECORD } from "./records.ts";
import { u16, vector16 } from "./wire.ts";

const without = (left: Part): Part[] => FLIGHT.filter((part) => part !== left);

test("a good flight makes it secure, byte by byte as well", () => {
  const { connection, flight } = begin();
  assert.equal(outcome(connection, sealFlight(flight)), "secure");
  connection.feed(flight.application.seal(RECORD.applicationData, Buffer.from("payload")));
  assert.equal(String(connection.read()), "payload");

  const slow = begin();
  const all = sealFlight(slow.flight);
  for (let at = 0; at < all.length; at++) {
    assert.equal(slow.connection.isSecure, false);
    const answer = outcome(slow.connection, all.subarray(at, at + 1));
    assert.equal(answer, at === all.length - 1 ? "secure" : null);
  }
});

for (const part of FLIGHT) {
  test(`${part}: missing, doubled, in another place`, () => {
    const missing = begin();
    const alert = outcome(missing.connection, sealFlight(missing.flight, without(part)));
    if (part === "finished") assert.equal(alert, null);
    else assert.equal(alert, "unexpected_message");

    const doubled = begin();
    const twice = FLIGHT.flatMap((one) => (one === part ? [one, one] : [one]));
    const said = outcome(doubled.connection, sealFlight(doubled.flight, twice));
    if (part === "finished") assert.ok(said === "bad_record_mac" || said === "secure", String(said));
    else assert.equal(said, "unexpected_message");
  });

  test(`${part}: one byte more, or changed, is refused`, () => {
    const longer = begin();
    const more = Buffer.concat([longer.flight.parts[part], Buffer.of(0)]);
    more.writeUIntBE(more.length - 4, 1, 3);
    const parts = { ...longer.flight.parts, [part]: more };
    assert.match(
      outcome(longer.connection, sealFlight({ ...longer.flight, parts })) ?? "",
      /decode_error|decrypt_error|bad_/,
    );

    for (let at = 4; at < longer.flight.parts[part].length; at += 11) {
      const { connection, flight } = begin();
      const changed = Buffer.from(flight.parts[part]);
      changed[at] = (changed[at] ?? 0) ^ 0x41;
      const alert = outcome(
        connection,
        sealFlight({ ...flight, parts: { ...flight.parts, [part]: changed } }),
      );
      assert.notEqual(alert, "secure", `${part}, byte ${at}`);
    }
  });
}

/** Of the messages behind the ServerHello. */
function* orders(parts: readonly Part[]): Generator<readonly Part[]> {
  if (parts.length <= 1) yield parts;
  for (const [at, first] of parts.entries())
    for (const rest of orders(parts.toSpliced(at, 1))) if (parts.length > 1) yield [first, ...rest];
}

test("every other order of the messages is refused, and of the ServerHello behind one of them", () => {
  const [hello, ...others] = FLIGHT;
  for (const order of orders(others)) {
    const { connection, flight } = begin();
    const said = outcome(connection, sealFlight(flight, [hello, ...order]));
    if (order.every((part, at) => part === others[at])) assert.equal(said, "secure");
    // Finished in front of others changes the key for them.
    else assert.match(said ?? "", /unexpected_message|bad_record_mac/, order.join());
  }
  for (const first of others) {
    const { connection, flight } = begin();
    const open = plainRecord(RECORD.handshake, flight.parts[first]);
    assert.equal(outcome(connection, Buffer.concat([open, sealFlight(flight)])), "unexpected_message");
  }
});

test("messages may share a record, or lie in records of one byte; nothing may follow the last of a key", () => {
  const [hello, ...others] = FLIGHT;
  const together = (flight: Flight, more: Buffer = Buffer.alloc(0)): Buffer =>
    Buffer.concat([...others.map((part) => flight.parts[part]), more]);
  const shared = begin();
  const first = plainRecord(RECORD.handshake, shared.flight.parts[hello]);
  const record = shared.flight.handshake.seal(RECORD.handshake, together(shared.flight));
  assert.equal(outcome(shared.connection, Buffer.concat([first, record])), "secure");

  const split = begin();
  const records = [...together(split.flight)].map((byte) =>
    split.flight.handshake.seal(RECORD.handshake, Buffer.of(byte)),
  );
  const helloRecord = plainRecord(RECORD.handshake, split.flight.parts[hello]);
  assert.equal(outcome(split.connection, Buffer.concat([helloRecord, ...records])), "secure");

  const longer = begin();
  const open = plainRecord(RECORD.handshake, Buffer.concat([longer.flight.parts[hello], Buffer.of(8)]));
  assert.equal(outcome(longer.connection, open), "unexpected_message");
});

test("a length that says more than the message has, or less, is refused, or waited for", () => {
  for (const part of FLIGHT)
    for (const change of [-1, 1, 200, 0x7f_0000]) {
      const { connection, flight } = begin();
      const message = Buffer.from(flight.parts[part]);
      message.writeUIntBE(Math.max(0, message.length - 4 + change), 1, 3);
      const parts = { ...flight.parts, [part]: message };
      const said = outcome(connection, sealFlight({ ...flight, parts }));
      assert.notEqual(said, "secure", `${part}, ${change}`);
      if (change === 0x7f_0000) assert.equal(said, "decode_error", part);
    }
});

test("a certificate that another key signed for, and one whose scheme does not fit its key", () => {
  const other = makeCertificate({ names: ["server.test"] });
  const deceived = connection13();
  deceived.start();
  const hello = (deceived.takeOutput() ?? assert.fail()).subarray(5);
  const forged = answerHello(hello, { ...certificate, key: other.key });
  assert.equal(outcome(deceived, sealFlight(forged)), "decrypt_error");

  const { connection, flight } = begin();
  const verify = Buffer.from(flight.parts.verify);
  verify.writeUInt16BE(0x0804, 4);
  const changed = sealFlight({ ...flight, parts: { ...flight.parts, verify } });
  assert.equal(outcome(connection, changed), "illegal_parameter");
});

test("payload before the server is known is never given", () => {
  for (let behind = 1; behind < FLIGHT.length; behind++) {
    const { connection, flight } = begin();
    const payload = flight.handshake.seal(RECORD.applicationData, Buffer.from("payload"));
    // Sealed first, so it has the number of the first record behind the hello.
    const first = plainRecord(RECORD.handshake, flight.parts.hello);
    assert.equal(outcome(connection, Buffer.concat([first, payload])), "unexpected_message");
  }
  const { connection } = begin();
  assert.equal(
    outcome(connection, plainRecord(RECORD.applicationData, Buffer.alloc(40))),
    "unexpected_message",
  );
});

test("what is too long, empty or of no type is refused", () => {
  const say = (bytes: Buffer): string | null => outcome(begin().connection, bytes);
  assert.equal(say(plainRecord(RECORD.handshake, Buffer.alloc(0))), "unexpected_message");
  assert.equal(say(plainRecord(RECORD.handshake, Buffer.of(2, 0xff, 0xff, 0xff))), "decode_error");
  assert.equal(say(Buffer.of(22, 3, 3, 0x7f, 0xff)), "record_overflow");
  assert.equal(say(plainRecord(RECORD.alert, Buffer.of(2, 40))), "alert of the server");
  assert.equal(say(plainRecord(RECORD.alert, Buffer.of(2))), "decode_error");
  assert.equal(say(plainRecord(RECORD.handshake, Buffer.of(99, 0, 0, 0))), "unexpected_message");
});

test("ChangeCipherSpec is passed over, but not for ever, and not behind the handshake", () => {
  const change = plainRecord(RECORD.changeCipherSpec, Buffer.of(1));
  const { connection, flight } = begin();
  const [first, ...others] = FLIGHT;
  const bytes = sealFlight(flight, [first, ...others]);
  const helloBytes = 5 + flight.parts.hello.length;
  connection.feed(Buffer.concat([bytes.subarray(0, helloBytes), change, bytes.subarray(helloBytes)]));
  assert.equal(connection.read(), null);
  assert.equal(connection.isSecure, true);
  connection.feed(change);
  assert.throws(() => connection.read(), /ChangeCipherSpec/);
  assert.equal(
    outcome(begin().connection, Buffer.concat(Array<Buffer>(40).fill(change))),
    "unexpected_message",
  );
  assert.equal(
    outcome(begin().connection, plainRecord(RECORD.changeCipherSpec, Buffer.of(2))),
    "unexpected_message",
  );
});

test("a retry for nothing, for a group that has its share, for one that was not offered, or twice", () => {
  const retry = (sessionId: Buffer, extensions: ReadonlyMap<number, Buffer>): Buffer => {
    const all = new Map([[43, u16(0x0304)], ...extensions]);
    return plainRecord(
      RECORD.handshake,
      encodeServerHello({ random: RETRY_RANDOM, sessionId, suite: 0x1301, extensions: all }),
    );
  };
  for (const [extensions, alert] of [
    [new Map(), "illegal_parameter"],
    [new Map([[51, u16(0x1d)]]), "illegal_parameter"],
    [new Map([[51, u16(0x0100)]]), "illegal_parameter"],
    [new Map([[44, vector16()]]), "decode_error"],
    [new Map([[16, Buffer.alloc(0)]]), "illegal_parameter"],
    [new Map([[1234, Buffer.alloc(0)]]), "unsupported_extension"],
  ] as [Map<number, Buffer>, string][]) {
    const { connection, sessionId } = begin();
    assert.equal(outcome(connection, retry(sessionId, extensions)), alert);
  }
  const { connection, sessionId } = begin();
  const cookie = new Map([[44, vector16(Buffer.from("cookie"))]]);
  assert.equal(outcome(connection, retry(sessionId, cookie)), null);
  assert.ok(connection.takeOutput());
  assert.equal(outcome(connection, retry(sessionId, cookie)), "unexpected_message");
});

test("an older version is told apart from a forced one", () => {
  const older = (tail: string): string | null => {
    const { connection, sessionId } = begin();
    const random = Buffer.concat([Buffer.alloc(32 - tail.length / 2, 7), Buffer.from(tail, "hex")]);
    const message = encodeServerHello({ random, sessionId, suite: 0xc02f, extensions: new Map() });
    return outcome(connection, plainRecord(RECORD.handshake, message));
  };
  assert.equal(older("00"), "protocol_version");
  assert.equal(older("444f574e47524401"), "illegal_parameter");
  assert.equal(older("444f574e47524400"), "illegal_parameter");
});
