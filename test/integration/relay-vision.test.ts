/** Vision whose inside is no TLS, handed over to workers while either side still pads, in VLESS Encryption. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
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
import { VisionStream } from "#protocols/vless/vision-stream.ts";
import {
  ANSWER,
  AnswerStripper,
  COMMAND_TCP,
  decodeRequest,
  encodeRequest,
  VISION,
} from "#protocols/vless/wire.ts";
import { lateWorker } from "../support/carriers.ts";
import { arrivesWhole, keepsToALimit, readsSlowly, uploadsInSilence } from "../support/connections.ts";
import { relayPair } from "../support/relay-pair.ts";

const ID = Buffer.alloc(16, 7);
const REQUEST = encodeRequest(ID, {
  flow: VISION,
  command: COMMAND_TCP,
  destination: toDestination("example.com", 80),
});
const backend = await lateWorker();
const skip = backend === null ? "SKIP Vision in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;

const texts = newEncryption("native", "x25519");
const server = new EncryptionServer(readServerEncryption(texts.server) as ServerEncryption, new TicketBook());
const settings = readClientEncryption(texts.client) as ClientEncryption;
const never = new AbortController().signal;

async function back(socket: Socket): Promise<Duplex> {
  // A new one each time: with a ticket it would wait for the server's first record before a worker can have it.
  const client = new EncryptionClient(settings, () => performance.now());
  const { stream, bypass } = await client.open(socket, never, true);
  assert.ok(bypass !== null);
  const secured = { stream, bypass, serverName: null, alpn: null };
  return new VisionStream({
    secured,
    id: ID,
    opening: REQUEST,
    answer: new AnswerStripper(),
    openAfterMs: 5,
  });
}

async function front(socket: Socket): Promise<Duplex> {
  const { stream, bypass } = await server.accept(socket, 5_000, true);
  assert.ok(bypass !== null);
  stream.on("error", () => {});
  {
    using reader = new ByteReader(stream, { timeoutMs: 5_000, maxBytes: 1 << 20 });
    await reader.take((bytes) => {
      const decoded = decodeRequest(bytes);
      return decoded === null ? null : { value: null, size: decoded.size };
    });
  }
  const secured = { stream, bypass, serverName: null, alpn: null };
  return new VisionStream({ secured, id: ID, opening: ANSWER, answer: null, openAfterMs: null });
}

const openChain = relayPair({ backend, back, front });

test("whatever both sides write arrives whole, half-closes too", { skip }, () =>
  arrivesWhole(openChain, { numRuns: 20, pauseMs: 2, taken }),
);

test("an upload to a far side that says nothing", { skip }, () => {
  const before = taken();
  return uploadsInSilence(openChain, (relays) => taken() >= before + relays);
});

test("bulk both ways at once, to a client that reads slowly", { skip }, () => readsSlowly(openChain));

test("a limit holds", { skip }, () => keepsToALimit((port, options) => openChain(port, options, {})));
