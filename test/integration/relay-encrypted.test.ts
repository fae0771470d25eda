/** Connections whose way out is in VLESS Encryption, handed over to a worker: whole, half-closed, forged, cut off. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { CipherName } from "#protocols/vless/encryption/cipher.ts";
import { EncryptionClient } from "#protocols/vless/encryption/client.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { EncryptionServer } from "#protocols/vless/encryption/server.ts";
import {
  type ClientEncryption,
  readClientEncryption,
  readServerEncryption,
  type ServerEncryption,
} from "#protocols/vless/encryption/settings.ts";
import { TicketBook } from "#protocols/vless/encryption/tickets.ts";
import { openWebSocketClient } from "#transport/websocket/client.ts";
import { acceptUpgrade } from "#transport/websocket/server.ts";
import { type CountingCarrier, lateWorker } from "../support/carriers.ts";
import { arrivesWhole, type Way } from "../support/connections.ts";
import { openRelayed, type Relayed, type RelayedOptions } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const late = await lateWorker();
const skip = late === null ? "SKIP records of a worker: needs Linux and node:ffi" : false;
const never = new AbortController().signal;
const taken = (): number => (late as CountingCarrier).taken;

type Carrier = "TCP" | "WebSocket";
const PATH = "/up";

/** What lies below the records on either side of a socket. */
const below = {
  TCP: {
    server: async (socket: Socket): Promise<Duplex> => socket,
    client: async (socket: Socket): Promise<Duplex> => socket,
  },
  WebSocket: {
    server: (socket: Socket) => acceptUpgrade(socket, { path: PATH, host: null }),
    client: (socket: Socket) =>
      openWebSocketClient(
        socket,
        { path: PATH, host: "server.test", headers: {}, earlyDataBytes: 0, earlyDataHeader: "" },
        never,
      ),
  },
} as const;

/** A server in VLESS Encryption, and what leads a relay's socket to it. */
async function serve(
  appearance: "native" | "xorpub",
  use: (stream: Duplex, wire: Duplex, keep: (onward: Socket) => Socket) => void,
  carrier: Carrier = "TCP",
  cipher: CipherName = "aes-256-gcm",
) {
  const { client: clientText, server: serverText } = newEncryption(appearance, "x25519");
  const book = new TicketBook();
  const settings = readServerEncryption(serverText) as ServerEncryption;
  const streams = new Set<Duplex>();
  const keep = <Stream extends Duplex>(stream: Stream): Stream => {
    streams.add(stream);
    return stream.on("error", () => {}).once("close", () => streams.delete(stream));
  };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    keep(socket);
    const accept = async (): Promise<void> => {
      const wire = await below[carrier].server(socket);
      const { stream } = await new EncryptionServer(settings, book).accept(wire, 5_000);
      use(keep(stream), wire, keep);
    };
    accept().catch(() => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = new EncryptionClient(
    readClientEncryption(clientText) as ClientEncryption,
    () => performance.now(),
    cipher,
  );
  const { port } = server.address() as AddressInfo;
  return {
    open: (options: RelayedOptions = {}): Promise<Relayed> =>
      openRelayed(port, {
        backend: late,
        ...options,
        back: async (socket) => (await client.open(await below[carrier].client(socket), never)).stream,
      }),
    /** Whatever is left of its connections goes, too: a half-open one would keep the process. */
    async [Symbol.asyncDispose]() {
      server.close();
      for (const stream of streams) stream.destroy();
      await once(server, "close");
    },
  };
}

for (const [appearance, cipher] of [
  ["native", "aes-256-gcm"],
  ["xorpub", "chacha20-poly1305"],
] as const)
  test(
    `${appearance} by ${cipher}: whatever both sides write arrives whole, half-closes too`,
    { skip },
    async () => {
      const takenBefore = taken();
      const open = async (originPort: number, options?: RelayedOptions): Promise<Way> => {
        const server = await serve(
          appearance,
          (stream, _wire, keep) => {
            const onward = keep(connect({ port: originPort, host: "127.0.0.1", allowHalfOpen: true }));
            stream.pipe(onward).pipe(stream);
          },
          "TCP",
          cipher,
        );
        const relayed = await server.open(options);
        return {
          relays: [relayed],
          dial: () => relayed.dial(),
          async [Symbol.asyncDispose]() {
            await relayed[Symbol.asyncDispose]();
            await server[Symbol.asyncDispose]();
          },
        };
      };
      await arrivesWhole(open, { numRuns: 8, pauseMs: 5 });
      assert.ok(taken() > takenBefore, "no worker took any");
    },
  );

/** How the client's connection ends, once a worker has it and the server has said something else in its records' place. */
async function endBehind(carrier: Carrier, spoil: (wire: Duplex) => void) {
  const { promise: served, resolve } = Promise.withResolvers<Duplex>();
  const use = (stream: Duplex, wire: Duplex): void => {
    stream.once("data", () => {
      stream.write("before");
      resolve(wire);
    });
  };
  await using server = await serve("native", use, carrier);
  await using relayed = await server.open();
  const takenBefore = taken();
  const client = await relayed.dial();
  let [got, code] = ["", null as string | null];
  client.on("data", (bytes: Buffer) => (got += String(bytes)));
  client.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? ""));
  client.write("hello");
  const wire = await served;
  await until("the client has it", () => got === "before");
  await until("a worker has it", () => taken() > takenBefore);
  spoil(wire);
  await until("the client's connection is over", () => client.closed);
  await until("the relay is, too", () => relayed.settled === 1);
  return { got, code };
}

for (const carrier of ["TCP", "WebSocket"] as const) {
  for (const [title, bytes] of [
    ["a forged record", Buffer.concat([Buffer.from("1703030020", "hex"), Buffer.alloc(32, 1)])],
    ["a header that is none", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["a record without content", Buffer.from("170303000a00000000000000000000", "hex")],
    ["a record that is too long", Buffer.from("170303ffff0000", "hex")],
  ] as const)
    test(`${carrier}: ${title} ends the connection, and nothing of it is handed on`, { skip }, async () => {
      const end = await endBehind(carrier, (wire) => wire.write(bytes));
      assert.deepEqual(end, { got: "before", code: "ECONNRESET" });
    });

  test(`${carrier}: an end within a record is a fault`, { skip }, async () => {
    const cut = Buffer.concat([Buffer.from("1703030020", "hex"), Buffer.alloc(10)]);
    const end = await endBehind(carrier, (wire) => wire.end(cut));
    assert.deepEqual(end, { got: "before", code: "ECONNRESET" });
  });
}
