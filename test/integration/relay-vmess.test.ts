/** Chunks of VMess, as a server and as a client, handed over to workers before either header has passed, and after. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { VmessCodec } from "#protocols/vmess/codec.ts";
import * as header from "#protocols/vmess/header.ts";
import { RequestGuard, RequestMemory, serverHandshake } from "#protocols/vmess/server-handshake.ts";
import { vmessUsers } from "#protocols/vmess/users.ts";
import {
  CHUNK_FAULTS,
  echoesChunks,
  endsAtABrokenChunk,
  passesResets,
} from "../support/broken-connections.ts";
import { lateWorker } from "../support/carriers.ts";
import {
  arrivesWhole,
  keepsToALimit,
  openEchoes,
  readsSlowly,
  uploadsInSilence,
} from "../support/connections.ts";
import { type OpenPair, relayPair } from "../support/relay-pair.ts";
import { openRelayed } from "../support/relayed.ts";
import { until } from "../support/until.ts";

const SILENCE_MS = 20_000;
const CHUNKED = header.OPTION_CHUNKS | header.OPTION_MASKING;
/** What a request asks for: options and cipher. */
const FORMS = {
  "aes-128-gcm": [CHUNKED, header.SECURITY_AES],
  "chacha20-poly1305, padded": [CHUNKED | header.OPTION_PADDING, header.SECURITY_CHACHA],
  "aes-128-gcm, padded, sizes sealed": [
    CHUNKED | header.OPTION_PADDING | header.OPTION_AUTHENTICATED_LENGTH,
    header.SECURITY_AES,
  ],
  "chunks that are not masked": [header.OPTION_CHUNKS, header.SECURITY_AES],
  "no cipher and no chunks": [0, header.SECURITY_NONE],
} as const;
type Form = keyof typeof FORMS;

const backend = await lateWorker();
const skip = backend === null ? "SKIP VMess in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;
const users = vmessUsers(
  [{ id: "ann", credential: "b831381d-6324-4d53-ad4f-8cda48b30811", flow: null }],
  "test",
);
const guard = new RequestGuard(Date.now, new RequestMemory());
const [ann] = users.all;

function clientCodec(form: Form): VmessCodec {
  const [options, security] = FORMS[form];
  const request: header.RequestHeader = {
    iv: randomBytes(16),
    key: randomBytes(16),
    verifier: 7,
    options,
    security,
    command: header.COMMAND_TCP,
    destination: toDestination("example.com", 80),
  };
  assert.ok(ann !== undefined);
  return new VmessCodec(request, header.sealRequest(ann.commandKey, request, header.newChance(Date.now())));
}

const back = (form: Form) => (socket: Socket) => openStream(socket, clientCodec(form), { openAfterMs: 5 });

async function front(socket: Socket): Promise<Duplex> {
  const { request } = await readHandshake(socket, serverHandshake(users, guard), SILENCE_MS);
  return openStream(socket, new VmessCodec(request, null), { discardOnFaultMs: SILENCE_MS });
}

const openChain = (form: Form): OpenPair => relayPair({ backend, back: back(form), front });

for (const form of Object.keys(FORMS) as Form[]) {
  test(`${form}: whatever both sides write arrives whole, half-closes too`, { skip }, () =>
    arrivesWhole(openChain(form), { numRuns: 6, pauseMs: 1, taken }),
  );

  test(`${form}: an upload to a far side that says nothing`, { skip }, () => {
    const before = taken();
    return uploadsInSilence(
      openChain(form),
      // Without chunks a client has to read the response, which is sealed.
      (relays) => taken() >= before + (form.startsWith("no") ? 1 : relays),
    );
  });
}

test("bulk both ways at once, to a client that reads slowly", { skip }, () =>
  readsSlowly(openChain("aes-128-gcm")),
);

test("a limit holds", { skip }, () =>
  keepsToALimit((port, options) => openChain("chacha20-poly1305, padded")(port, options, {})),
);

test("a fault of one side becomes a fault of the other", { skip }, async () => {
  await using origin = await openEchoes();
  await using chain = await openChain("aes-128-gcm")(origin.port);
  await passesResets(chain, origin);
});

for (const fault of CHUNK_FAULTS)
  test(`a chunk that is ${fault} ends it for the origin; its sender gets no byte`, { skip }, async () => {
    await using origin = await openEchoes();
    await using far = await openRelayed(origin.port, { backend, front });
    const client = await far.dial();
    const codec = clientCodec("aes-128-gcm");
    const before = taken();
    await echoesChunks(client, codec, 8_000);
    await until("a worker has it", () => taken() === before + 1);
    await endsAtABrokenChunk(fault, { client, codec, origin });
  });
