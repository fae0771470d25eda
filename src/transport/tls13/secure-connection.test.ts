/** A client's TLS 1.3 connection behind its handshake. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, outcome } from "../../../test/support/tls13-client.ts";
import { type Flight, sealFlight } from "../../../test/support/tls13-server.ts";
import { PeerAlert, TlsFault } from "./alerts.ts";
import type { ClientConnection } from "./client-connection.ts";
import { RECORD } from "./records.ts";
import { u16, vector16 } from "./wire.ts";

function secure(): { connection: ClientConnection; flight: Flight } {
  const made = begin();
  assert.equal(outcome(made.connection, sealFlight(made.flight)), "secure");
  made.connection.takeOutput();
  return made;
}

test("behind the handshake: updates of keys, tickets, empty records, the end", () => {
  const { connection, flight } = secure();
  const { application } = flight;
  const ticket = Buffer.concat([
    Buffer.of(4, 0, 0, 15, 0, 0, 1, 0, 1, 2, 3, 4, 0),
    vector16(Buffer.of(9, 9)),
    u16(0),
  ]);
  ticket.writeUIntBE(ticket.length - 4, 1, 3);
  connection.feed(application.seal(RECORD.handshake, ticket));
  connection.feed(application.seal(RECORD.applicationData, Buffer.alloc(0), 100));
  connection.feed(application.seal(RECORD.handshake, Buffer.of(24, 0, 0, 1, 1)));
  application.update();
  connection.feed(application.seal(RECORD.applicationData, Buffer.from("with the next key")));
  assert.equal(String(connection.read()), "with the next key");
  assert.ok((connection.takeOutput()?.length ?? 0) > 0, "our own update was asked for");
  connection.feed(application.seal(RECORD.alert, Buffer.of(1, 0)));
  connection.feed(application.seal(RECORD.applicationData, Buffer.from("late")));
  assert.equal(connection.read(), null);
  assert.equal(connection.hasEnded, true);
  assert.ok(connection.write(Buffer.from("still")).length > 5, "our own direction goes on");
  assert.ok(connection.end().length > 5);
  assert.throws(() => connection.write(Buffer.from("x")));
});

test("behind the handshake: what is refused", () => {
  const refused = (alert: string, ...records: (readonly [type: number, content: Buffer])[]): void => {
    const { connection, flight } = secure();
    for (const [type, content] of records) connection.feed(flight.application.seal(type, content));
    assert.throws(
      () => {
        while (connection.read() !== null);
      },
      (error) => error instanceof TlsFault && error.alert === alert,
    );
    assert.ok(connection.takeOutput());
  };
  refused("illegal_parameter", [RECORD.handshake, Buffer.of(24, 0, 0, 1, 2)]);
  refused("decode_error", [RECORD.handshake, Buffer.of(24, 0, 0, 2, 0, 0)]);
  refused("unexpected_message", [RECORD.handshake, Buffer.of(24, 0, 0, 1, 0, 24)]);
  refused("unexpected_message", [RECORD.handshake, Buffer.of(13, 0, 0, 0)]);
  refused("unexpected_message", [RECORD.handshake, Buffer.of(0, 0, 0, 0)]);
  refused(
    "unexpected_message",
    [RECORD.handshake, Buffer.of(4, 0, 0, 9)],
    [RECORD.applicationData, Buffer.of(1)],
  );
  refused("decode_error", [RECORD.handshake, Buffer.of(4, 0, 0, 1, 0)]);
  refused("unexpected_message", [99, Buffer.of(1)]);
  const empty = Array.from({ length: 40 }, () => [RECORD.applicationData, Buffer.alloc(0)] as const);
  refused("unexpected_message", ...empty);
  const { connection, flight } = secure();
  connection.feed(flight.application.seal(RECORD.alert, Buffer.of(2, 80)));
  assert.throws(() => connection.read(), PeerAlert);
  assert.equal(connection.takeOutput(), null);
});
