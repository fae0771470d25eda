/** Sealed connections of Shadowsocks, as a server and as a client: by the pump, and handed over to the workers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { findMethod, masterKey, type Method, preSharedKeys } from "#protocols/shadowsocks/methods.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { serverHandshake } from "#protocols/shadowsocks/server-handshake.ts";
import { serverKeys } from "#protocols/shadowsocks/server-keys.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";
import { chanceBy, Sip022ClientCodec } from "#protocols/shadowsocks/sip022.ts";
import {
  CHUNK_FAULTS,
  echoesChunks,
  endsAtABrokenChunk,
  passesResets,
  servedClient,
} from "../support/broken-connections.ts";
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
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort, missing, startPeer } from "../support/peer.ts";
import { type PairWay, relayPair } from "../support/relay-pair.ts";
import { openRelayed, type RelayedOptions } from "../support/relayed.ts";

const CIPHERS = [
  "aes-128-gcm",
  "chacha20-ietf-poly1305",
  "xchacha20-ietf-poly1305",
  "2022-blake3-aes-256-gcm",
  "2022-blake3-chacha20-poly1305",
];
/** Its ciphers stay where they are: libcrypto has none for it. */
const NEVER_LEAVES = "xchacha20-ietf-poly1305";
const ADDRESS = encodeSocksAddress(toDestination("example.com", 80));
const SILENCE_MS = 20_000;
const CHANCE = chanceBy(Date.now);

const ways = [
  { name: "pump", backend: null },
  ...pathsOver(await openThreads(1)).filter(({ backend }) => backend?.afterBytes === 1),
];

interface Sides {
  codec(): StreamCodec;
  readonly front: (socket: Socket) => Promise<Duplex>;
}

function sidesOf(cipher: string, address = ADDRESS): Sides {
  const method = findMethod(cipher) as Method;
  const isModern = method.edition === "2022";
  const password = isModern ? Buffer.alloc(method.keyBytes, 5).toString("base64") : "sesame";
  const keys = serverKeys(method, password, null);
  const known = new ReplayFilter({ capacity: 100, windowMs: Infinity, now: () => performance.now() });
  const used = new SharedSalts();
  return {
    codec: () =>
      isModern
        ? new Sip022ClientCodec({
            method,
            keys: preSharedKeys(method, password),
            address,
            chance: CHANCE,
          })
        : new Sip004Codec({ method, master: masterKey(method, password), request: address, salts: used }),
    async front(socket) {
      const { codec, payload } = await readHandshake(
        socket,
        serverHandshake(keys, known, CHANCE),
        SILENCE_MS,
      );
      const stream = openStream(socket, codec, { discardOnFaultMs: SILENCE_MS });
      if (payload.length > 0) stream.unshift(payload);
      return stream;
    },
  };
}

interface Chain extends PairWay {
  /** The sealed side of the last session in the far one. */
  readonly stream: () => Duplex;
}

/** From the plain client to the sealed wire, and from there to the origin. */
async function openChain(
  { backend }: (typeof ways)[number],
  cipher: string,
  originPort: number,
  options: RelayedOptions = {},
): Promise<Chain> {
  const { codec, front } = sidesOf(cipher);
  let stream: Duplex | null = null;
  const open = relayPair({
    backend,
    back: (socket) => openStream(socket, codec(), { openAfterMs: 5 }),
    front: async (socket) => (stream = await front(socket)),
  });
  return { ...(await open(originPort, options)), stream: () => stream as unknown as Duplex };
}

/** Plain clients are the test's: the wire is what it dials. */
async function openFar(
  { backend }: (typeof ways)[number],
  cipher: string,
  originPort: number,
  options: RelayedOptions = {},
): Promise<Way> {
  const { codec, front } = sidesOf(cipher);
  const far = await openRelayed(originPort, { backend, ...options, front });
  return {
    relays: [far],
    dial: async () => openStream(await far.dial(), codec(), {}),
    [Symbol.asyncDispose]: () => far[Symbol.asyncDispose](),
  };
}

const LIBEV = ["-s", "127.0.0.1", "-k", "sesame"];

/** 4 MiB there and back at once, behind enough turns for a connection to be handed over. */
async function exchange(client: Socket): Promise<void> {
  for (let round = 0; round < 3; round++) await echoed(client, 20_000);
  await echoed(client, 4 << 20);
  client.destroy();
}

for (const way of ways) {
  for (const cipher of CIPHERS)
    test(`${way.name}: ${cipher}: whatever both sides write arrives whole, half-closes too`, async () => {
      const takenBefore = way.backend?.taken ?? 0;
      await arrivesWhole((port, options) => openChain(way, cipher, port, options), {
        numRuns: 12,
        pauseMs: 1,
      });
      if (way.backend !== null) assert.equal(way.backend.taken > takenBefore, cipher !== NEVER_LEAVES);
    });

  for (const cipher of ["aes-128-gcm", "chacha20-ietf-poly1305"])
    test(
      `${way.name}: ${cipher} with shadowsocks-libev`,
      { skip: missing("ss-server", "ss-tunnel") },
      async () => {
        const takenBefore = way.backend?.taken ?? 0;
        await using origin = await openTcpOrigin(echo);
        const { codec, front } = sidesOf(cipher, encodeSocksAddress(origin.destination));
        const peerPort = await freePort();
        await using _server = await startPeer(
          ["ss-server", ...LIBEV, "-p", `${peerPort}`, "-m", cipher],
          peerPort,
        );
        await using near = await openRelayed(peerPort, {
          backend: way.backend,
          back: (socket) => openStream(socket, codec(), {}),
        });
        await exchange(await near.dial());

        await using far = await openRelayed(origin.port, { backend: way.backend, front });
        const localPort = await freePort();
        const local = ["-b", "127.0.0.1", "-l", `${localPort}`, "-L", "127.0.0.1:9"];
        await using _tunnel = await startPeer(
          ["ss-tunnel", ...LIBEV, "-p", `${far.port}`, "-m", cipher, ...local],
          localPort,
        );
        await exchange(connect({ port: localPort, host: "127.0.0.1" }));
        if (way.backend !== null) assert.ok(way.backend.taken >= takenBefore + 2);
      },
    );

  for (const cipher of ["2022-blake3-aes-128-gcm", "2022-blake3-chacha20-poly1305"])
    test(`${way.name}: ${cipher}: an upload to a far side that says nothing`, () => {
      const before = way.backend?.taken ?? 0;
      return uploadsInSilence(
        (port, options) => openChain(way, cipher, port, options),
        (relays) => way.backend === null || way.backend.taken >= before + relays,
      );
    });

  test(`${way.name}: a server of the older ciphers is handed over before it has answered`, () => {
    const before = way.backend?.taken ?? 0;
    return uploadsInSilence(
      (port, options) => openChain(way, "aes-128-gcm", port, options),
      // The client waits for the server's salt, which it has to compare with those of before.
      () => way.backend === null || way.backend.taken >= before + 1,
    );
  });

  test(`${way.name}: bulk both ways at once, to a client that reads slowly`, () =>
    readsSlowly((port, options) => openChain(way, "chacha20-ietf-poly1305", port, options)));

  test(`${way.name}: a fault of one side becomes a fault of the other`, async () => {
    await using origin = await openEchoes();
    await using chain = await openChain(way, "aes-128-gcm", origin.port);
    await passesResets(chain, origin);
    const third = await servedClient(chain);
    const over = Promise.race([once(third, "end"), outcome(third)]);
    const gone = outcome(origin.latest());
    chain.stream().destroy(); // as if its user were taken away
    await Promise.all([over, gone]);
    third.destroy();
    await chain.relays[0].untilSettled(3);
  });

  test(`${way.name}: a limit holds`, () =>
    keepsToALimit((port, options) => openFar(way, "2022-blake3-aes-256-gcm", port, options)));

  for (const fault of CHUNK_FAULTS)
    test(`${way.name}: a chunk that is ${fault} ends it for the origin; its sender gets no byte`, async () => {
      await using origin = await openEchoes();
      const { codec: newCodec, front } = sidesOf("chacha20-ietf-poly1305");
      await using far = await openRelayed(origin.port, { backend: way.backend, front });
      const client = await far.dial();
      const codec = newCodec();
      const taken = way.backend?.taken;
      await echoesChunks(client, codec, 10_000);
      if (taken !== undefined) assert.equal(way.backend?.taken, taken + 1);
      await endsAtABrokenChunk(fault, { client, codec, origin });
      assert.equal(far.settled, 1);
    });
}
