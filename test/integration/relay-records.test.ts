/** Connections whose way out is TLS 1.3 by our own engine, handed over to a worker: against servers of the runtime, of OpenSSL, and a hostile one. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "node:tls";
import { ByteQueue } from "#lib/byte-queue.ts";
import { ALERT } from "#transport/tls13/alerts.ts";
import { RECORD, takeRecord } from "#transport/tls13/records.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { type CountingCarrier, lateWorker } from "../support/carriers.ts";
import { makeCertificate } from "../support/certificate.ts";
import { arrivesWhole, type Way } from "../support/connections.ts";
import { freePort, missing } from "../support/peer.ts";
import { openRelayed, type Relayed, type RelayedOptions } from "../support/relayed.ts";
import { connection13 } from "../support/tls13-dial.ts";
import { answerHello, type Flight, sealFlight } from "../support/tls13-server.ts";
import { until } from "../support/until.ts";

const own = makeCertificate({ names: ["server.test"] });
const late = await lateWorker();
const skip = late === null ? "SKIP records of a worker: needs Linux and node:ffi" : false;
const SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/** A listener whose clients' plain bytes go to a TLS server of that port. */
function openRelay(port: number, options: RelayedOptions = {}): Promise<Relayed> {
  return openRelayed(port, {
    backend: late,
    ...options,
    async back(socket) {
      const stream = new RecordStream(socket, connection13());
      stream.begin();
      await once(stream, "secure");
      return stream;
    },
  });
}

const taken = (): number => (late as CountingCarrier).taken;

for (const ciphers of SUITES)
  test(`${ciphers}: whatever both sides write arrives whole, half-closes too`, { skip }, async () => {
    const takenBefore = taken();
    const open = async (originPort: number, options?: RelayedOptions): Promise<Way> => {
      const tls = {
        cert: own.cert,
        key: own.key,
        ciphers,
        minVersion: "TLSv1.3",
        allowHalfOpen: true,
      } as const;
      const server = createServer(tls, (socket) => {
        const onward = connect({ port: originPort, host: "127.0.0.1", allowHalfOpen: true });
        for (const side of [socket, onward]) side.on("error", () => {});
        socket.pipe(onward).pipe(socket);
      });
      await once(server.listen(0, "127.0.0.1"), "listening");
      const relayed = await openRelay((server.address() as AddressInfo).port, options);
      return {
        relays: [relayed],
        dial: () => relayed.dial(),
        async [Symbol.asyncDispose]() {
          await relayed[Symbol.asyncDispose]();
          server.close();
        },
      };
    };
    await arrivesWhole(open, { numRuns: 8, pauseMs: 5 });
    assert.ok(taken() > takenBefore, "no worker took any");
  });

test(
  "new keys of OpenSSL, for one direction and for both",
  { skip: skip || missing("openssl") },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "records-"));
    for (const [name, text] of Object.entries({ "c.pem": own.cert, "k.pem": own.key }))
      writeFileSync(join(folder, name), text);
    const port = await freePort();
    const args = `s_server -accept 127.0.0.1:${port} -cert c.pem -key k.pem -tls1_3 -msg`;
    const server = spawn("openssl", args.split(" "), { cwd: folder });
    const closed = once(server, "close");
    let said = "";
    for (const out of [server.stdout, server.stderr])
      out.on("data", (bytes: Buffer) => (said += String(bytes)));
    try {
      await until("the server listens", () => said.includes("ACCEPT"));
      const takenBefore = taken();
      await using relayed = await openRelay(port);
      const client = await relayed.dial();
      let got = "";
      client.on("data", (bytes: Buffer) => (got += String(bytes)));
      client.write("hello from the client\n");
      await until("the server has it", () => said.includes("hello from the client"));
      server.stdin.write("hello from the server\n");
      await until("the client has it", () => got.includes("hello from the server"));
      for (const [at, command] of ["k", "K", "K", "k"].entries()) {
        server.stdin.write(`${command}\n`);
        await until("the line came", () => {
          server.stdin.write(`line ${at}\n`); // again, should it have been read together with the command
          return got.includes(`line ${at}`);
        });
        client.write(`answer ${at}\n`);
        await until("the answer came", () => said.includes(`answer ${at}`));
      }
      assert.equal(taken(), takenBefore + 1, "no worker took it");
      const updates = (sign: string): number => said.split(new RegExp(`${sign}.*KeyUpdate`)).length - 1;
      assert.equal(updates(">>>"), 4);
      assert.equal(updates("<<<"), 2, "we were asked for two");
      client.destroy();
      await relayed.untilSettled();
    } finally {
      server.kill("SIGKILL");
      await closed;
      rmSync(folder, { recursive: true });
    }
  },
);

interface Hostile extends AsyncDisposable {
  readonly port: number;
  /** Of its one client. */
  readonly served: Promise<{ socket: Socket; flight: Flight; received: () => Buffer[] }>;
}

/** Does the handshake; what follows is the test's. `received` opens what the client said behind its Finished. */
async function openHostile(): Promise<Hostile> {
  const { promise: served, resolve } = Promise.withResolvers<Awaited<Hostile["served"]>>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    const queue = new ByteQueue();
    let flight: Flight | null = null;
    let sealedRecords = 0;
    const said: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => {
      queue.push(bytes);
      for (let record = takeRecord(queue); record !== null; record = takeRecord(queue)) {
        if (flight === null) {
          flight = answerHello(record.body, own);
          socket.write(sealFlight(flight));
          resolve({ socket, flight, received: () => said });
        } else if (record.type === RECORD.applicationData && sealedRecords++ > 0)
          said.push(flight.ofClient.open(record).content); // behind its Finished
      }
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    served,
    async [Symbol.asyncDispose]() {
      (await served).socket.destroy();
      server.close();
    },
  };
}

/** How the client's connection ends, once a worker has it and the server has said more. */
async function endBehind(say: (socket: Socket, flight: Flight, client: Socket) => void) {
  await using hostile = await openHostile();
  await using relayed = await openRelay(hostile.port);
  const takenBefore = taken();
  const client = await relayed.dial();
  let got = "";
  let code: string | null = null;
  client.on("data", (bytes: Buffer) => (got += String(bytes)));
  client.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? ""));
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  client.on("close", () => close()); // an error comes first
  client.write("hello");
  const { socket, flight, received } = await hostile.served;
  await until("the server has it", () => Buffer.concat(received()).includes("hello"));
  socket.write(flight.application.seal(RECORD.applicationData, Buffer.from("before")));
  await until("the client has it", () => got === "before");
  await until("a worker has it", () => taken() > takenBefore);
  say(socket, flight, client);
  await closed;
  await relayed.untilSettled();
  await until("the server has all", () => socket.destroyed || socket.readableEnded);
  return { got, code, said: received().slice(1), bytes: relayed.bytes };
}

test(
  "a forged record ends the connection, and the server gets an alert with the reason",
  { skip },
  async () => {
    const { got, code, said, bytes } = await endBehind((socket, { application }) => {
      const good = application.seal(RECORD.applicationData, Buffer.from(" after"));
      const forged = application.seal(RECORD.applicationData, Buffer.from("forged"));
      forged[7] = (forged[7] ?? 0) ^ 1;
      socket.write(Buffer.concat([good, forged]));
    });
    assert.ok(got === "before after" || got === "before", got); // a reset may overtake it
    assert.equal(code, "ECONNRESET");
    assert.equal(said[0]?.[1], ALERT.bad_record_mac);
    assert.equal(bytes.download, "before after".length);
  },
);

test("a record that is cut off is a fault, and no end", { skip }, async () => {
  const { got, code } = await endBehind((socket, { application }) => {
    socket.end(application.seal(RECORD.applicationData, Buffer.from("cut")).subarray(0, 10));
  });
  assert.equal(got, "before");
  assert.equal(code, "ECONNRESET");
});

test("close_notify is an end, and is answered by one", { skip }, async () => {
  const { got, code, said, bytes } = await endBehind((socket, { application }, client) => {
    socket.end(application.seal(RECORD.alert, Buffer.of(1, ALERT.close_notify)));
    client.end();
  });
  assert.equal(got, "before");
  assert.equal(code, null);
  assert.deepEqual(
    said.map((content) => content[1]),
    [ALERT.close_notify],
  );
  assert.deepEqual(bytes, { upload: 5, download: 6 });
});
