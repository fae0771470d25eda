/** VLESS without a flow, handed over to workers before either header of the answer has passed, and after. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { ClientCodec, ServerCodec } from "#protocols/vless/codec.ts";
import { COMMAND_TCP, decodeRequest, encodeRequest } from "#protocols/vless/wire.ts";
import { lateWorker } from "../support/carriers.ts";
import { outcome } from "../support/client.ts";
import { arrivesWhole, keepsToALimit, readsSlowly, uploadsInSilence } from "../support/connections.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { relayPair } from "../support/relay-pair.ts";
import { openRelayed } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const REQUEST = encodeRequest(Buffer.alloc(16, 1), {
  flow: "",
  command: COMMAND_TCP,
  destination: toDestination("example.com", 80),
});
const backend = await lateWorker();
const skip = backend === null ? "SKIP VLESS in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;

const back = (socket: Socket): Duplex =>
  new CodecStream(socket, new ClientCodec(REQUEST), { openAfterMs: 5 });

async function front(socket: Socket): Promise<Duplex> {
  using reader = new ByteReader(socket, { timeoutMs: 5_000, maxBytes: 1 << 20 });
  await reader.take((bytes) => {
    const decoded = decodeRequest(bytes);
    return decoded === null ? null : { value: null, size: decoded.size };
  });
  return new CodecStream(socket, new ServerCodec());
}

const openChain = relayPair({ backend, back, front });

test("whatever both sides write arrives whole, half-closes too", { skip }, () =>
  arrivesWhole(openChain, { numRuns: 12, pauseMs: 1, taken }),
);

test("bulk both ways at once, to a client that reads slowly", { skip }, () => readsSlowly(openChain));

test("a limit holds", { skip }, () => keepsToALimit((port, options) => openChain(port, options, {})));

test(
  "an upload to a far side that says nothing goes by workers, and its late answer comes whole",
  { skip },
  () => {
    const before = taken();
    return uploadsInSilence(openChain, (relays) => taken() >= before + relays);
  },
);

for (const [title, header, ends] of [
  ["a header in single bytes", [0, 2, 7, 7], false],
  ["another version", [1, 0], true],
] as const)
  test(`${title}, once a worker has the connection`, { skip }, async () => {
    let server: Socket | null = null;
    await using origin = await openTcpOrigin((socket) => void (server = socket));
    await using near = await openRelayed(origin.port, { backend, back });
    const before = taken();
    const client = await near.dial();
    client.write("hello");
    await until("it is handed over", () => taken() === before + 1 && server !== null);
    const socket = server as unknown as Socket;
    const end = outcome(client);
    const got = once(client, "data").catch(() => []);
    for (const byte of [...header, 42]) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (ends) assert.equal(await end, "ECONNRESET");
    else assert.deepEqual([...((await got)[0] as Buffer)], [42]);
    client.destroy();
    socket.destroy();
  });
