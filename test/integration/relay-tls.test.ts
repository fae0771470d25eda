/** Conversations whose client speaks TLS: by the pump and by the relay threads, with node:tls and with the library itself. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import fc from "fast-check";
import { z } from "zod";
import { SILENT } from "#core/log.ts";
import { openEngine } from "#engine/engine.ts";
import { nativeTls } from "#platform/tls.ts";
import type { Carrier } from "#relay/carrier.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import { openTlsServer, readTlsServer } from "#transport/tls/server.ts";
import { makeCertificate } from "../support/certificate.ts";
import { outcome, readAll } from "../support/client.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { opensslClient } from "../support/openssl-client.ts";
import { missing } from "../support/peer.ts";
import { openRelayed, unlimited, type Relayed, type RelayedOptions } from "../support/relayed.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const files = {
  resolve: (path: string) => path,
  readPem: async (text: string) => text,
  watchPem: () => ({ [Symbol.dispose]() {} }),
};
const fields = z
  .object(tlsServerFields)
  .parse({ certificate: certificate.cert, "private-key": certificate.key });
const tlsOptions = readTlsServer(fields, "listener test");
assert.ok(tlsOptions !== null);

const native = nativeTls();
const byNode = await openTlsServer(tlsOptions, files, SILENT, null);
const byLibrary = native === null ? null : await openTlsServer(tlsOptions, files, SILENT, native);

/** Counts what it took. */
class Counting implements Carrier {
  taken = 0;
  readonly afterBytes: number;
  readonly #carrier: Carrier;

  constructor(carrier: Carrier, afterBytes: number) {
    this.#carrier = carrier;
    this.afterBytes = afterBytes;
  }

  carry(...args: Parameters<Carrier["carry"]>): Promise<void> | null {
    const carried = this.#carrier.carry(...args);
    if (carried !== null) this.taken++;
    return carried;
  }
}

const engine = native === null ? null : await openEngine({ threads: 1, onDeath: (why) => assert.fail(why) });
after(() => engine?.[Symbol.asyncDispose]());

const ways = [
  { name: "node:tls, pump", server: byNode, carrier: null },
  ...(byLibrary === null || engine === null
    ? []
    : [
        { name: "native, pump", server: byLibrary, carrier: null },
        { name: "native, engine", server: byLibrary, carrier: new Counting(engine, 0) },
        { name: "native, handed over", server: byLibrary, carrier: new Counting(engine, 1) },
      ]),
];

interface Front {
  readonly relayed: Relayed;
  readonly port: number;
  /** Of the session that came last. */
  readonly stream: () => Duplex;
  dial(options?: ConnectionOptions): Promise<TLSSocket>;
}

async function openFront(
  way: (typeof ways)[number],
  port: number,
  options: RelayedOptions = {},
): Promise<Front> {
  let stream: Duplex | null = null;
  const front = async (socket: Socket): Promise<Duplex> => {
    ({ stream } = await way.server.accept(socket));
    return stream;
  };
  const relayed = await openRelayed(port, { carrier: way.carrier, ...options, front });
  return {
    relayed,
    port: relayed.port,
    stream: () => stream as unknown as Duplex,
    async dial(tls = {}) {
      const socket = await relayed.dial();
      const client = connect({ socket, rejectUnauthorized: false, ...tls });
      client.on("error", () => {});
      await once(client, "secureConnect");
      return client;
    },
  };
}

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

async function play(socket: Duplex, blocks: readonly Buffer[]): Promise<void> {
  for (const block of blocks) if (!socket.write(block)) await once(socket, "drain");
  socket.end();
}

const script = fc.array(fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 300_000 })), {
  maxLength: 8,
});

const noOpenssl = missing("openssl");

for (const way of ways) {
  test(`${way.name}: keys are updated on the way`, { skip: noOpenssl }, async () => {
    await using origin = await openTcpOrigin(echo);
    const { relayed, port } = await openFront(way, origin.port);
    await using _relayed = relayed;
    const lines = Array.from({ length: 90 }, (_, at) =>
      at % 3 === 0 ? "K" : at % 3 === 1 ? "k" : `line ${at}`,
    );
    const said = await opensslClient(port, ["-tls1_3"], lines);
    assert.match(said, /line 89\n/);
    assert.match(said, /this is the last line\n/);
  });

  for (const version of ["TLSv1.2", "TLSv1.3"] as const)
    test(`${way.name}: ${version}: whatever both sides write arrives whole, half-closes too`, async () => {
      await fc.assert(
        fc.asyncProperty(script, script, async (up, down) => {
          const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
          await using origin = await openTcpOrigin(resolve);
          const { relayed, dial } = await openFront(way, origin.port);
          await using _relayed = relayed;
          const client = await dial({ minVersion: version, maxVersion: version });
          const remote = await accepted;
          const [fromClient, fromRemote] = [up, down].map((sizes) => sizes.map((size) => randomBytes(size)));
          const arrived = [readAll(remote), readAll(client)];
          await Promise.all([play(client, fromClient as Buffer[]), play(remote, fromRemote as Buffer[])]);
          const [atRemote, atClient] = await Promise.all(arrived);
          assert.equal(hashOf(atRemote as Buffer), hashOf(Buffer.concat(fromClient as Buffer[])));
          assert.equal(hashOf(atClient as Buffer), hashOf(Buffer.concat(fromRemote as Buffer[])));
          while (relayed.settled === 0) await delay(1);
          const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);
          assert.deepEqual(relayed.bytes, { upload: sum(up), download: sum(down) });
        }),
        { numRuns: 15 },
      );
    });

  test(`${way.name}: bulk both ways at once, to a client that reads slowly`, async () => {
    await using origin = await openTcpOrigin(echo);
    const { relayed, dial } = await openFront(way, origin.port);
    await using _relayed = relayed;
    const client = await dial();
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
    assert.equal(hashOf(Buffer.concat(got)), hashOf(bytes));
    if (way.carrier !== null) assert.ok(way.carrier.taken > 0, "nothing was carried");
  });

  test(`${way.name}: a fault of one side becomes a fault of the other`, async () => {
    const remotes: Socket[] = [];
    await using origin = await openTcpOrigin((socket) => {
      remotes.push(socket);
      echo(socket);
    });
    const { relayed, dial, stream } = await openFront(way, origin.port);
    await using _relayed = relayed;
    const exchange = async (): Promise<TLSSocket> => {
      const client = await dial();
      client.write(randomBytes(100_000));
      for (let got = 0; got < 100_000;) got += ((await once(client, "data")) as [Buffer])[0].length;
      client.resume();
      return client;
    };
    const first = await exchange();
    const over = Promise.race([once(first, "end"), outcome(first)]); // without close_notify, or a reset
    (remotes.at(-1) as Socket).resetAndDestroy();
    await over;
    first.destroy();
    await exchange();
    const reset = outcome(remotes.at(-1) as Socket);
    stream().destroy(); // as if its user were taken away
    await reset;
    while (relayed.settled < 2) await delay(1);
  });

  test(`${way.name}: a limit holds`, async () => {
    await using origin = await openTcpOrigin((socket) => void socket.end(randomBytes(400_000)));
    let paidBytes = 0;
    let held = 0;
    const meter = {
      ...unlimited,
      free: false,
      pieceBytes: 20_000,
      charge: (_: string, bytes: number) => ((paidBytes += bytes), held++ % 8 === 0 ? 2 : 0),
      correct: (_: string, bytes: number) => void (paidBytes += bytes),
    };
    const { relayed, dial } = await openFront(way, origin.port, { meter });
    await using _relayed = relayed;
    const client = await dial();
    const got = await readAll(client);
    client.end();
    assert.equal(got.length, 400_000);
    while (relayed.settled === 0) await delay(1);
    assert.equal(paidBytes, 400_000);
    assert.ok(held >= 20, `${held} pieces`);
  });
}
