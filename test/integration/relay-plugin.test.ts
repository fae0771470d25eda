/** Shadowsocks behind v2ray-plugin, in WebSocket and HTTPUpgrade, with and without TLS, handed over to workers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Socket } from "node:net";
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
import { dialling, type Form, openChain } from "../support/node-chain.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { behindPlugin } from "../support/plugin-forms.ts";
import { PLUGIN_PATH } from "../support/plugin-server.ts";
import { openRelayed } from "../support/relayed.ts";
import { certificate } from "../support/tls-sides.ts";

const BROWSER = { "client-fingerprint": "chrome" };
const UPGRADE = { "v2ray-http-upgrade": true };
const FAST_UPGRADE = { ...UPGRADE, "v2ray-http-upgrade-fast-open": true };

const FORMS: Readonly<Record<string, Form>> = {
  "2022-blake3-aes-128-gcm in WebSocket": behindPlugin("2022-blake3-aes-128-gcm", "WebSocket"),
  "2022-blake3-chacha20-poly1305 in WebSocket and TLS": behindPlugin(
    "2022-blake3-chacha20-poly1305",
    "WebSocket and TLS",
  ),
  "2022-blake3-aes-256-gcm in WebSocket and TLS of a browser, early data": behindPlugin(
    "2022-blake3-aes-256-gcm",
    "WebSocket and TLS",
    { ...BROWSER, path: `${PLUGIN_PATH}?ed=2048` },
  ),
  "2022-blake3-aes-128-gcm in HTTPUpgrade": behindPlugin("2022-blake3-aes-128-gcm", "WebSocket", UPGRADE),
  "aes-128-gcm in WebSocket": behindPlugin("aes-128-gcm", "WebSocket"),
  "aes-256-gcm in WebSocket and TLS": behindPlugin("aes-256-gcm", "WebSocket and TLS"),
  "chacha20-ietf-poly1305 in WebSocket and TLS of a browser": behindPlugin(
    "chacha20-ietf-poly1305",
    "WebSocket and TLS",
    BROWSER,
  ),
  "chacha20-ietf-poly1305 in HTTPUpgrade and TLS, fast open": behindPlugin(
    "chacha20-ietf-poly1305",
    "WebSocket and TLS",
    FAST_UPGRADE,
  ),
};
const names = Object.keys(FORMS);

const backend = await lateWorker();
const skip = backend === null ? "SKIP Shadowsocks in WebSocket in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;
const chain = (name: string): OpenWay => openChain(FORMS[name] as Form, backend);

for (const name of names) {
  test(`${name}: whatever both sides write arrives whole, half-closes too`, { skip }, () =>
    arrivesWhole(chain(name), { numRuns: 6, pauseMs: 1, taken }),
  );

  test(`${name}: an upload to a far side that says nothing goes by workers`, { skip }, () => {
    const before = taken();
    // A client of the older ciphers has to compare the server's salt with those of before: only the listener has left then.
    return uploadsInSilence(chain(name), () => taken() >= before + (name.startsWith("2022") ? 2 : 1));
  });

  test(`${name}: bulk both ways at once, to a client that reads slowly`, { skip }, () =>
    readsSlowly(chain(name)),
  );

  test(`${name}: a client leaves a download that has no end`, { skip }, () => {
    const before = taken();
    return leavesDownload(chain(name), () => taken() >= before + 2);
  });

  test(`${name}: a limit holds`, { skip }, () => keepsToALimit(chain(name)));

  test(`${name}: a fault of the far side becomes a fault of the client`, { skip }, async () => {
    await using origin = await openEchoes();
    await using way = await chain(name)(origin.port);
    const before = taken();
    const client = (await way.dial()) as Socket;
    for (let round = 0; round < 3; round++) await echoed(client, 100_000);
    assert.ok(taken() >= before + 2);
    const over = Promise.race([once(client, "end"), outcome(client)]);
    origin.latest().resetAndDestroy();
    await over;
    client.destroy();
    await way.relays[0]?.untilSettled();
  });
}

const PEER_SKIP = skip === false ? missing("ss-server", "ss-v2ray-plugin") : skip;

for (const name of ["aes-128-gcm in WebSocket", "aes-256-gcm in WebSocket and TLS"])
  test(`${name} to ss-server behind v2ray-plugin goes by workers`, { skip: PEER_SKIP }, async () => {
    const form = FORMS[name] as Form;
    const port = await freePort();
    const tls = name.endsWith("TLS") ? "tls;cert={}/cert.pem;key={}/key.pem;" : "";
    const plugin = `server;mux=0;${tls}host=server.test;path=${PLUGIN_PATH}`;
    const command = `ss-server -s 127.0.0.1 -p ${port} -k sesame -m ${String(form.client["cipher"])}`;
    const files = { "cert.pem": certificate.cert, "key.pem": certificate.key };
    await using _peer = await startPeerWithFiles(
      [...command.split(" "), "--plugin", "ss-v2ray-plugin", "--plugin-opts", plugin],
      port,
      files,
    );
    await using origin = await openTcpOrigin(echo);
    await using near = await openRelayed(port, { backend, back: dialling(form, port, origin.port) });
    const before = taken();
    const client = await near.dial();
    for (const size of [10, 200_000, 4 << 20]) await echoed(client, size);
    assert.equal(taken(), before + 1);
    client.destroy();
  });
