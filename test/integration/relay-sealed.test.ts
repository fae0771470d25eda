/** Sealed conversations of Shadowsocks, as a server and as a client: by the pump, and handed over to the relay threads. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import type { StreamCodec } from "#net/codec-stream.ts";
import { openEngine } from "#engine/engine.ts";
import { toDestination } from "#net/ip.ts";
import { readHandshake } from "#net/read-handshake.ts";
import { encodeSocksAddress } from "#net/socks-address.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { findMethod, masterKey, type Method, preSharedKeys } from "#protocols/shadowsocks/methods.ts";
import { openStream } from "#protocols/shadowsocks/sealed-stream.ts";
import { serverHandshake } from "#protocols/shadowsocks/server-handshake.ts";
import { serverKeys } from "#protocols/shadowsocks/server-keys.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";
import { chanceBy, Sip022ClientCodec } from "#protocols/shadowsocks/sip022.ts";
import type { Carrier } from "#relay/carrier.ts";
import { outcome, readAll } from "../support/client.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort, missing, startPeer } from "../support/peer.ts";
import { openRelayed, type Relayed, type RelayedOptions, unlimited } from "../support/relayed.ts";

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

/** Counts what it took. */
class Counting implements Carrier {
  taken = 0;
  readonly afterBytes = 1;
  readonly #carrier: Carrier;

  constructor(carrier: Carrier) {
    this.#carrier = carrier;
  }

  carry(...args: Parameters<Carrier["carry"]>): Promise<void> | null {
    const carried = this.#carrier.carry(...args);
    if (carried !== null) this.taken++;
    return carried;
  }
}

const canCarry = process.platform === "linux" && process.getBuiltinModule("node:ffi") !== undefined;
const engine = canCarry ? await openEngine({ threads: 1, onDeath: (why) => assert.fail(why) }) : null;
after(() => engine?.[Symbol.asyncDispose]());
const ways = [
  { name: "pump", carrier: null },
  ...(engine === null ? [] : [{ name: "handed over", carrier: new Counting(engine) }]),
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
  const salts = () => new ReplayFilter({ capacity: 100, windowMs: Infinity, now: () => 0 });
  const [known, used] = [salts(), salts()];
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

async function portOf(relayed: Relayed): Promise<number> {
  const probe = await relayed.dial();
  const port = probe.remotePort as number;
  probe.destroy();
  return port;
}

interface Chain extends AsyncDisposable {
  /** From the plain client to the sealed wire, and from there to the origin. */
  readonly near: Relayed;
  readonly far: Relayed;
  /** The sealed side of the last session in `far`. */
  readonly stream: () => Duplex;
  readonly wirePort: number;
}

async function openChain(
  way: (typeof ways)[number],
  cipher: string,
  originPort: number,
  options: RelayedOptions = {},
): Promise<Chain> {
  const { codec, front } = sidesOf(cipher);
  let stream: Duplex | null = null;
  const common = { carrier: way.carrier, ...options };
  await using undo = new AsyncDisposableStack();
  const far = undo.use(
    await openRelayed(originPort, {
      ...common,
      front: async (socket) => (stream = await front(socket)),
    }),
  );
  const wirePort = await portOf(far);
  const near = undo.use(
    await openRelayed(wirePort, {
      ...common,
      back: (socket) => openStream(socket, codec(), { openAfterMs: 5 }),
    }),
  );
  const opened = undo.move();
  return {
    near,
    far,
    stream: () => stream as unknown as Duplex,
    wirePort,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const LIBEV = ["-s", "127.0.0.1", "-k", "sesame"];

/** 4 MiB there and back at once, slowly read, behind enough turns for a conversation to be handed over. */
async function exchange(client: Socket): Promise<void> {
  for (let round = 0; round < 3; round++) {
    client.write(randomBytes(20_000));
    for (let got = 0; got < 20_000;) got += ((await once(client, "data")) as [Buffer])[0].length;
  }
  const bytes = randomBytes(4 << 20);
  const got: Buffer[] = [];
  client.on("data", (chunk: Buffer) => void got.push(chunk));
  client.write(bytes);
  while (got.reduce((sum, { length }) => sum + length, 0) < bytes.length) await once(client, "data");
  assert.equal(hashOf(Buffer.concat(got)), hashOf(bytes));
  client.destroy();
}

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

async function play(socket: Duplex, blocks: readonly Buffer[]): Promise<void> {
  for (const block of blocks) {
    if (!socket.write(block)) await once(socket, "drain");
    else await delay(1);
  }
  socket.end();
}

const script = fc.array(fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 300_000 })), {
  maxLength: 8,
});

for (const way of ways) {
  for (const cipher of CIPHERS)
    test(`${way.name}: ${cipher}: whatever both sides write arrives whole, half-closes too`, async () => {
      const takenBefore = way.carrier?.taken ?? 0;
      await fc.assert(
        fc.asyncProperty(script, script, async (up, down) => {
          const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
          await using origin = await openTcpOrigin(resolve);
          await using chain = await openChain(way, cipher, origin.port);
          const client = await chain.near.dial();
          const [fromClient, fromRemote] = [up, down].map((sizes) => sizes.map((size) => randomBytes(size)));
          const atClient = readAll(client);
          const played = play(client, fromClient as Buffer[]);
          const remote = await accepted;
          const atRemote = readAll(remote);
          await Promise.all([played, play(remote, fromRemote as Buffer[])]);
          assert.equal(hashOf(await atRemote), hashOf(Buffer.concat(fromClient as Buffer[])));
          assert.equal(hashOf(await atClient), hashOf(Buffer.concat(fromRemote as Buffer[])));
          while (chain.near.settled < 1 || chain.far.settled < 2) await delay(1); // the probe was one, too
          const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
          assert.deepEqual(chain.near.bytes, { upload: sum(up), download: sum(down) });
          assert.deepEqual(chain.far.bytes, { upload: sum(up), download: sum(down) });
        }),
        { numRuns: 12 },
      );
      if (way.carrier !== null) assert.equal(way.carrier.taken > takenBefore, cipher !== NEVER_LEAVES);
    });

  for (const cipher of ["aes-128-gcm", "chacha20-ietf-poly1305"])
    test(
      `${way.name}: ${cipher} with shadowsocks-libev`,
      { skip: missing("ss-server", "ss-tunnel") },
      async () => {
        const takenBefore = way.carrier?.taken ?? 0;
        await using origin = await openTcpOrigin(echo);
        const { codec, front } = sidesOf(cipher, encodeSocksAddress(origin.destination));
        const peerPort = await freePort();
        await using _server = await startPeer(
          ["ss-server", ...LIBEV, "-p", `${peerPort}`, "-m", cipher],
          peerPort,
        );
        await using near = await openRelayed(peerPort, {
          carrier: way.carrier,
          back: (socket) => openStream(socket, codec(), {}),
        });
        await exchange(await near.dial());

        await using far = await openRelayed(origin.port, { carrier: way.carrier, front });
        const farPort = await portOf(far);
        const localPort = await freePort();
        const local = ["-b", "127.0.0.1", "-l", `${localPort}`, "-L", "127.0.0.1:9"];
        await using _tunnel = await startPeer(
          ["ss-tunnel", ...LIBEV, "-p", `${farPort}`, "-m", cipher, ...local],
          localPort,
        );
        await exchange(connect({ port: localPort, host: "127.0.0.1" }));
        if (way.carrier !== null) assert.ok(way.carrier.taken >= takenBefore + 2);
      },
    );

  test(`${way.name}: bulk both ways at once, to a client that reads slowly`, async () => {
    await using origin = await openTcpOrigin(echo);
    await using chain = await openChain(way, "chacha20-ietf-poly1305", origin.port);
    const client = await chain.near.dial();
    const bytes = randomBytes(24 << 20);
    client.write("first");
    await once(client, "data");
    client.pause();
    client.end(bytes);
    await delay(50);
    const got: Buffer[] = [];
    client.on("data", (chunk: Buffer) => void got.push(chunk));
    client.resume();
    await once(client, "end");
    assert.equal(
      hashOf(Buffer.concat(got)),
      hashOf(Buffer.concat([Buffer.from("first"), bytes]).subarray(5)),
    );
  });

  test(`${way.name}: a fault of one side becomes a fault of the other`, async () => {
    const remotes: Socket[] = [];
    await using origin = await openTcpOrigin((socket) => {
      remotes.push(socket);
      echo(socket);
    });
    await using chain = await openChain(way, "aes-128-gcm", origin.port);
    const begin = async (): Promise<Socket> => {
      const client = await chain.near.dial();
      for (let round = 0; round < 3; round++) {
        client.write(randomBytes(100_000));
        for (let got = 0; got < 100_000;) got += ((await once(client, "data")) as [Buffer])[0].length;
      }
      client.resume();
      return client;
    };
    const first = outcome(await begin());
    (remotes.at(-1) as Socket).resetAndDestroy();
    assert.equal(await first, "ECONNRESET");
    const second = await begin();
    const remote = outcome(remotes.at(-1) as Socket);
    second.resetAndDestroy();
    assert.equal(await remote, "ECONNRESET");
    const third = await begin();
    const over = Promise.race([once(third, "end"), outcome(third)]);
    const gone = outcome(remotes.at(-1) as Socket);
    chain.stream().destroy(); // as if its user were taken away
    await Promise.all([over, gone]);
    third.destroy();
    while (chain.near.settled < 3) await delay(1);
  });

  test(`${way.name}: a limit holds`, async () => {
    await using origin = await openTcpOrigin((socket) => void socket.resume().end(randomBytes(400_000)));
    let [paidBytes, held] = [0, 0];
    const meter = {
      ...unlimited,
      free: false,
      pieceBytes: 20_000,
      charge: (_: string, bytes: number) => ((paidBytes += bytes), held++ % 8 === 0 ? 2 : 0),
      correct: (_: string, bytes: number) => void (paidBytes += bytes),
    };
    const { codec, front } = sidesOf("2022-blake3-aes-256-gcm");
    await using far = await openRelayed(origin.port, { carrier: way.carrier, meter, front });
    const socket = await far.dial();
    const client = openStream(socket, codec(), {});
    client.write("go");
    const got = await readAll(client);
    client.end();
    assert.equal(got.length, 400_000);
    while (far.settled === 0) await delay(1);
    assert.equal(paidBytes, 400_002);
  });

  for (const fault of ["changed", "cut off"] as const)
    test(`${way.name}: a chunk that is ${fault} ends it for the origin; its sender is told nothing`, async () => {
      const remotes: Socket[] = [];
      await using origin = await openTcpOrigin((socket) => {
        remotes.push(socket);
        echo(socket);
      });
      const { codec: newCodec, front } = sidesOf("chacha20-ietf-poly1305");
      await using far = await openRelayed(origin.port, { carrier: way.carrier, front });
      const client = await far.dial();
      const codec = newCodec();
      const taken = way.carrier?.taken;
      let echoed = 0;
      client.on("data", (wire: Buffer) => codec.open(wire, (plain) => void (echoed += plain?.length ?? 0)));
      for (let round = 1; round < 9; round++) {
        client.write(codec.seal(randomBytes(10_000)));
        while (echoed < round * 10_000) await delay(1);
      }
      if (taken !== undefined) assert.equal(way.carrier?.taken, taken + 1);
      const reset = outcome(remotes[0] as Socket);
      const chunk = codec.seal(randomBytes(1_000));
      let closed = false;
      client.once("close", () => (closed = true));
      if (fault === "changed") {
        chunk[500] = (chunk[500] as number) ^ 1;
        client.write(chunk);
        assert.equal(await reset, "ECONNRESET");
        client.write(randomBytes(100_000));
        await delay(50);
        assert.equal(closed, false);
        client.end();
      } else {
        client.end(chunk.subarray(0, 500));
        assert.equal(await reset, "ECONNRESET");
      }
      if (!closed) await once(client, "close");
      assert.equal(client.errored, null);
      assert.equal(far.settled, 1);
    });
}
