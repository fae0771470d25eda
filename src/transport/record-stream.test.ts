/** A client's stream of TLS 1.3 whose server stops somewhere in its flight. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { certificate } from "../../test/support/tls13-client.ts";
import { connection13 } from "../../test/support/tls13-dial.ts";
import { answerHello, sealFlight } from "../../test/support/tls13-server.ts";
import { RecordStream } from "./record-stream.ts";
import { RECORD } from "./tls13/records.ts";

interface Served {
  readonly stream: RecordStream;
  readonly server: Duplex;
  /** The whole flight, and payload behind it. */
  readonly flight: Buffer;
  readonly flightBytes: number;
}

async function serve(): Promise<Served> {
  const [below, server] = duplexPair();
  const stream = new RecordStream(below, connection13());
  stream.on("data", () => {});
  stream.begin();
  const [hello] = (await once(server, "data")) as [Buffer];
  server.on("data", () => {}).on("error", () => {});
  const made = answerHello(hello.subarray(5), certificate);
  const flight = sealFlight(made);
  const payload = made.application.seal(RECORD.applicationData, Buffer.from("payload"));
  return { stream, server, flight: Buffer.concat([flight, payload]), flightBytes: flight.length };
}

for (const [how, leave] of [
  ["ends", (server: Duplex) => void server.end()],
  ["goes away", (server: Duplex) => void server.destroy()],
] as const)
  test(
    `a server that ${how} behind any byte of its flight: an error at once, no payload, no hang`,
    { timeout: 60_000 },
    async () => {
      for (let size = 0; ; size++) {
        const { stream, server, flight, flightBytes } = await serve();
        if (size >= flightBytes) return void stream.destroy(); // signatures are not always as long
        let isTrusted = false;
        stream.on("secure", () => (isTrusted = true)).on("data", () => assert.fail("payload"));
        const failed = once(stream, "error");
        server.write(flight.subarray(0, size));
        leave(server);
        const [error] = (await failed) as [Error];
        assert.match(error.message, /during the handshake|cut off|Premature close/, `${size} bytes`);
        assert.equal(isTrusted, false);
        assert.equal(stream.destroyed, true);
      }
    },
  );

test("in the middle of a record of payload it is an error, too, and between two it is an end", async () => {
  for (const missing of [0, 1, 10]) {
    const { stream, server, flight } = await serve();
    const over = new Promise<string>((resolve) => {
      stream.on("end", () => resolve("end")).on("error", (error) => resolve(error.message));
    });
    server.end(flight.subarray(0, flight.length - missing));
    assert.equal(await over, missing === 0 ? "end" : "the TLS connection was cut off");
  }
});
