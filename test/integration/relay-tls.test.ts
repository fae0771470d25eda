/** Connections whose client speaks TLS: by the pump and by the workers, with node:tls and with the library itself. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { openThreads, pathsOver } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import {
  arrivesWhole,
  keepsToALimit,
  openEchoes,
  readsSlowly,
  type OpenWay,
  type Way,
} from "../support/connections.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { updateKeys } from "../support/openssl-client.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { missing } from "../support/peer.ts";
import { openRelayed, type RelayedOptions } from "../support/relayed.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const byNode = await openListenerTls();
const byLibrary = native === null ? null : await openListenerTls(native);

const ways = [
  { name: "node:tls, pump", server: byNode, backend: null },
  ...(byLibrary === null
    ? []
    : [{ name: "pump", backend: null }, ...pathsOver(await openThreads(1))].map(({ name, backend }) => ({
        name: `native, ${name}`,
        server: byLibrary,
        backend,
      }))),
];

interface TlsWay extends Way {
  readonly port: number;
  /** Of the session that came last, on the side of the listener. */
  readonly stream: () => Duplex;
}

async function openTlsWay(
  { server, backend }: (typeof ways)[number],
  originPort: number,
  options: RelayedOptions = {},
  tls: ConnectionOptions = {},
): Promise<TlsWay> {
  let stream: Duplex | null = null;
  const relayed = await openRelayed(originPort, {
    backend,
    ...options,
    front: async (socket) => ({ stream } = await server.accept(socket)).stream,
  });
  return {
    relays: [relayed],
    port: relayed.port,
    stream: () => stream as unknown as Duplex,
    async dial() {
      const client = connect({ socket: await relayed.dial(), rejectUnauthorized: false, ...tls });
      client.on("error", () => {});
      await once(client, "secureConnect");
      return client;
    },
    [Symbol.asyncDispose]: () => relayed[Symbol.asyncDispose](),
  };
}

/** More than one thread has large buffers for. */
const UPLOADS = 40;
const noOpenssl = missing("openssl");

for (const way of ways) {
  const open: OpenWay = (port, options) => openTlsWay(way, port, options);

  test(`${way.name}: keys are updated on the way`, { skip: noOpenssl }, async () => {
    await using origin = await openTcpOrigin(echo);
    await using opened = await openTlsWay(way, origin.port);
    await updateKeys(opened.port, 90);
  });

  for (const version of ["TLSv1.2", "TLSv1.3"] as const)
    test(`${way.name}: ${version}: whatever both sides write arrives whole, half-closes too`, () =>
      arrivesWhole(
        (port, options) => openTlsWay(way, port, options, { minVersion: version, maxVersion: version }),
        { numRuns: 15 },
      ));

  test(`${way.name}: bulk both ways at once, to a client that reads slowly`, async () => {
    const takenBefore = way.backend?.taken ?? 0;
    await readsSlowly(open);
    if (way.backend !== null) assert.ok(way.backend.taken > takenBefore, "nothing was carried");
  });

  test(`${way.name}: many uploads at once, to an origin that reads one after the other`, async () => {
    const content = randomBytes(6 * 1024 * 1024);
    const arrived: Socket[] = [];
    const all = Promise.withResolvers<void>();
    await using origin = await openTcpOrigin((socket) => {
      const sum = createHash("sha1");
      if (arrived.push(socket.pause()) === UPLOADS) all.resolve();
      socket.on("data", (chunk: Buffer) => sum.update(chunk));
      socket.on("end", () => socket.end(sum.digest("hex")));
    });
    await using opened = await openTlsWay(way, origin.port);
    const clients = await Promise.all(Array.from({ length: UPLOADS }, () => opened.dial()));
    const answers = clients.map((client, at) => {
      client.end(content.subarray(at));
      return text(client);
    });
    await all.promise;
    for (const socket of arrived) {
      socket.resume();
      await once(socket, "finish");
    }
    const sums = (await Promise.all(answers)).toSorted();
    const expected = clients.map((_, at) => createHash("sha1").update(content.subarray(at)).digest("hex"));
    assert.deepEqual(sums, expected.toSorted());
  });

  test(`${way.name}: a fault of one side becomes a fault of the other`, async () => {
    await using origin = await openEchoes();
    await using opened = await openTlsWay(way, origin.port);
    const exchange = async (): Promise<Duplex> => {
      const client = await opened.dial();
      await echoed(client, 100_000);
      return client;
    };
    const first = await exchange();
    const over = Promise.race([once(first, "end"), outcome(first)]); // without close_notify, or a reset
    origin.latest().resetAndDestroy();
    await over;
    first.destroy();
    await exchange();
    const reset = outcome(origin.latest());
    opened.stream().destroy(); // as if its user were taken away
    await reset;
    await opened.relays[0]?.untilSettled(2);
  });

  test(`${way.name}: a limit holds`, () => keepsToALimit(open));
}
