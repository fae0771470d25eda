/** Chunks of VMess, as a server and as a client, handed over to workers before either header has passed, and after. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
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
import { openThreads, pathsOver } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import {
  arrivesWhole,
  keepsToALimit,
  openEchoes,
  readsSlowly,
  uploadsInSilence,
  type Way,
} from "../support/connections.ts";
import { openRelayed, type RelayedOptions } from "../support/relayed.ts";
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

const backend =
  pathsOver(await openThreads(1)).find((path) => path.backend?.afterBytes === 1)?.backend ?? null;
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

async function openChain(
  form: Form,
  originPort: number,
  options: RelayedOptions = {},
  farOptions = options,
): Promise<Way> {
  await using undo = new AsyncDisposableStack();
  const far = undo.use(await openRelayed(originPort, { backend, ...farOptions, front }));
  const near = undo.use(await openRelayed(far.port, { backend, ...options, back: back(form) }));
  const opened = undo.move();
  return { relays: [near, far], dial: () => near.dial(), [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

for (const form of Object.keys(FORMS) as Form[]) {
  test(`${form}: whatever both sides write arrives whole, half-closes too`, { skip }, () =>
    arrivesWhole((port, options) => openChain(form, port, options), { numRuns: 6, pauseMs: 1, taken }),
  );

  test(`${form}: an upload to a far side that says nothing`, { skip }, () => {
    const before = taken();
    return uploadsInSilence(
      (port, options) => openChain(form, port, options),
      // Without chunks a client has to read the response, which is sealed.
      (relays) => taken() >= before + (form.startsWith("no") ? 1 : relays),
    );
  });
}

test("bulk both ways at once, to a client that reads slowly", { skip }, () =>
  readsSlowly((port, options) => openChain("aes-128-gcm", port, options)),
);

test("a limit holds", { skip }, () =>
  keepsToALimit((port, options) => openChain("chacha20-poly1305, padded", port, options, {})),
);

test("a fault of one side becomes a fault of the other", { skip }, async () => {
  await using origin = await openEchoes();
  await using chain = await openChain("aes-128-gcm", origin.port);
  const begin = async (): Promise<Duplex> => {
    const client = await chain.dial();
    for (let round = 0; round < 3; round++) await echoed(client as Socket, 100_000);
    return client;
  };
  const first = outcome((await begin()) as Socket);
  origin.latest().resetAndDestroy();
  assert.equal(await first, "ECONNRESET");
  const second = (await begin()) as Socket;
  const remote = outcome(origin.latest());
  second.resetAndDestroy();
  assert.equal(await remote, "ECONNRESET");
});

for (const fault of ["changed", "cut off"] as const)
  test(`a chunk that is ${fault} ends it for the origin; its sender gets no byte`, { skip }, async () => {
    await using origin = await openEchoes();
    await using far = await openRelayed(origin.port, { backend, front });
    const client = await far.dial();
    const codec = clientCodec("aes-128-gcm");
    const before = taken();
    let backBytes = 0;
    client.on("data", (wire: Buffer) => codec.open(wire, (plain) => void (backBytes += plain?.length ?? 0)));
    for (let round = 1; round < 9; round++) {
      client.write(codec.seal(randomBytes(8_000)));
      await until("it is echoed", () => backBytes === round * 8_000);
    }
    await until("a worker has it", () => taken() === before + 1);
    const reset = outcome(origin.latest());
    const chunk = codec.seal(randomBytes(1_000));
    let isClosed = false;
    client.once("close", () => (isClosed = true));
    if (fault === "changed") {
      chunk[500] = (chunk[500] as number) ^ 1;
      client.write(chunk);
      assert.equal(await reset, "ECONNRESET");
      // More than the buffers between them hold: it is still read.
      await new Promise<void>((done, fail) =>
        client.write(Buffer.alloc(16 << 20), (error) => (error ? fail(error) : done())),
      );
      assert.equal(isClosed, false);
      client.end();
    } else {
      client.end(chunk.subarray(0, 500));
      assert.equal(await reset, "ECONNRESET");
    }
    if (!isClosed) await once(client, "close");
    assert.equal(client.errored, null);
  });
