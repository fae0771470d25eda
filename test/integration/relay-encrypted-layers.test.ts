/** VLESS Encryption in TLS, WebSocket and HTTPUpgrade, on both sides handed over to workers. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { once } from "node:events";
import { lateWorker } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import {
  arrivesWhole,
  keepsToALimit,
  leavesDownload,
  openEchoes,
  type OpenWay,
  readsSlowly,
  uploadsInSilence,
} from "../support/connections.ts";
import { encryptedForm } from "../support/encrypted-forms.ts";
import { type Form, openChain } from "../support/node-chain.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { metadataOf } from "../support/metadata.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { openRelayed } from "../support/relayed.ts";
import { clientTls, serverTls } from "../support/tls-sides.ts";

const WS = { "ws-path": "/up" };
const ws = (more: object = {}) => ({ network: "ws", "ws-opts": { path: "/up", ...more } });
const SECURED = { ...serverTls, ...WS };
const BROWSER = { "client-fingerprint": "chrome" };
const UPGRADE = { "v2ray-http-upgrade": true };
const FAST_UPGRADE = { ...UPGRADE, "v2ray-http-upgrade-fast-open": true };
const VISION = { flow: "xtls-rprx-vision" };

const FORMS: Readonly<Record<string, Form>> = {
  "native in TLS": encryptedForm("native", serverTls, clientTls),
  "xorpub in TLS of a browser": encryptedForm("xorpub", serverTls, { ...clientTls, ...BROWSER }),
  "xorpub in WebSocket": encryptedForm("xorpub", WS, ws()),
  "native in WebSocket and TLS, early data": encryptedForm("native", SECURED, {
    ...clientTls,
    ...ws({ path: "/up?ed=2048" }),
  }),
  "native in WebSocket and TLS of a browser": encryptedForm("native", SECURED, {
    ...clientTls,
    ...ws(),
    ...BROWSER,
  }),
  "native in HTTPUpgrade": encryptedForm("native", WS, ws(UPGRADE)),
  "xorpub in HTTPUpgrade and TLS, fast open": encryptedForm("xorpub", SECURED, {
    ...clientTls,
    ...ws(FAST_UPGRADE),
  }),
  "native in TLS, with a flow": encryptedForm("native", serverTls, clientTls, VISION),
  "native in WebSocket, with a flow": encryptedForm("native", WS, ws(), VISION),
  "xorpub in WebSocket and TLS of a browser, with a flow": encryptedForm(
    "xorpub",
    SECURED,
    { ...clientTls, ...ws(), ...BROWSER },
    VISION,
  ),
};

const RANDOM: Readonly<Record<string, Form>> = {
  "random in WebSocket": encryptedForm("random", WS, ws()),
  "random in TLS, with a flow": encryptedForm("random", serverTls, clientTls, VISION),
};

const backend = await lateWorker();
const skip = backend === null ? "SKIP VLESS Encryption in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;

for (const [name, form] of Object.entries(FORMS)) {
  const open: OpenWay = openChain(form, backend);

  test(`${name}: whatever both sides write arrives whole, half-closes too`, { skip }, () =>
    arrivesWhole(open, { numRuns: 6, pauseMs: 1 }),
  );

  test(`${name}: an upload to a far side that says nothing goes by workers`, { skip }, () => {
    const before = taken();
    return uploadsInSilence(open, () => taken() >= before + 2);
  });

  test(`${name}: bulk both ways at once, to a client that reads slowly`, { skip }, () => readsSlowly(open));

  test(`${name}: a client leaves a download that has no end`, { skip }, () => {
    const before = taken();
    return leavesDownload(open, () => taken() >= before + 2);
  });

  test(`${name}: a limit holds`, { skip }, () => keepsToALimit(open));

  test(`${name}: a fault of the far side ends the client's connection`, { skip }, async () => {
    await using origin = await openEchoes();
    await using way = await open(origin.port);
    const before = taken();
    const client = (await way.dial()) as Socket;
    for (let round = 0; round < 3; round++) await echoed(client, 100_000);
    assert.equal(taken(), before + 2);
    const over = Promise.race([once(client, "end"), outcome(client)]);
    origin.latest().resetAndDestroy();
    await over;
    client.destroy();
    await way.relays[0]?.untilSettled();
  });
}

for (const [name, form] of Object.entries(RANDOM))
  test(`${name}: stays in the event loop, and arrives whole`, { skip }, async () => {
    const before = taken();
    await arrivesWhole(openChain(form, backend), { numRuns: 6, pauseMs: 1 });
    assert.equal(taken(), before);
  });

test("with a ticket: both sides go to workers once the server has said something", { skip }, async () => {
  const { protocol, server, client } = encryptedForm("native", SECURED, { ...clientTls, ...ws() });
  await using origin = await openTcpOrigin(echo);
  await using far = await openServer(protocol, server, undefined, backend);
  const node = await openClient(protocol, { server: "127.0.0.1", port: far.port, ...client });
  const context = { signal: AbortSignal.timeout(20_000), metadata: metadataOf(origin.destination) };
  const back = async (socket: Socket): Promise<Duplex> => {
    socket.destroy(); // the node keeps the ticket, and dials by itself
    return node.connect(origin.destination, context);
  };
  await using near = await openRelayed(origin.port, { backend, back });
  for (let time = 0; time < 3; time++) {
    const before = taken();
    const client = await near.dial();
    for (let round = 0; round < 3; round++) await echoed(client, 100_000);
    assert.equal(taken(), before + 2);
    client.destroy();
  }
});
