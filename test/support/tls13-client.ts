/** A TLS 1.3 client of ours, and what becomes of it behind bytes of a server. */
import assert from "node:assert/strict";
import { PeerAlert, TlsFault } from "#transport/tls13/alerts.ts";
import type { ClientConnection } from "#transport/tls13/client-connection.ts";
import { makeCertificate } from "./certificate.ts";
import { connection13 } from "./tls13-dial.ts";
import { answerHello, type Flight } from "./tls13-server.ts";

export const certificate = makeCertificate({ names: ["server.test"] });

/** A connection that has said its hello, and a good answer to it. */
export function begin(): { connection: ClientConnection; flight: Flight; sessionId: Buffer } {
  const connection = connection13();
  connection.start();
  const hello = connection.takeOutput() ?? assert.fail();
  const message = hello.subarray(5);
  return { connection, flight: answerHello(message, certificate), sessionId: message.subarray(39, 71) };
}

/** Ends with the alert that was said, `null` where the client waits for more; never with payload. */
export function outcome(connection: ClientConnection, bytes: Buffer): string | null {
  connection.feed(bytes);
  try {
    assert.equal(connection.read(), null, "payload of a server that is not known");
    return connection.isSecure ? "secure" : null;
  } catch (error) {
    if (error instanceof PeerAlert) return "alert of the server";
    assert.ok(error instanceof TlsFault, String(error));
    assert.ok(connection.takeOutput(), "the server is told");
    connection.feed(bytes);
    assert.equal(connection.read(), null, "nothing is read behind a fault");
    return error.alert;
  }
}
