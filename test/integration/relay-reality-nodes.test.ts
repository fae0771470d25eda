/** Nodes with REALITY whose servers workers dial by themselves: whom they believe, and what others see of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import {
  mldsa65Seed,
  mldsa65Verify,
  openReality,
  openSite,
  realityClient,
  site,
} from "../support/reality.ts";
import { socksConnect } from "../support/socks-client.ts";
import { tlsProvider } from "../support/tls.ts";
import { openTlsOrigin } from "../support/tls-origin.ts";
import { echoBehindRequest, openTrojanEngine, ping } from "../support/trojan-engine.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";

/** Its certificates leave room for a signature of ML-DSA-65. */
const SITE_OPTIONS = { cert: site.cert.repeat(12), key: site.key };
const WAYS: readonly (readonly [browser: string, keys: object, more: object])[] = [
  ["", {}, {}],
  ["chrome", { "support-x25519mlkem768": false }, {}],
  ["firefox", {}, {}],
  ["safari", {}, {}],
  ["random", { "mldsa65-verify": mldsa65Verify }, { "mldsa65-seed": mldsa65Seed }],
];
for (const [browser, keys, more] of WAYS)
  test(
    `a server that knows the key is believed: ${browser} ${Object.keys(keys).join("")}`,
    { skip },
    async () => {
      await using dest = await openSite(SITE_OPTIONS);
      await using server = await openReality({ dest: dest.port, more, on: echoBehindRequest });
      const client = await realityClient(tlsProvider, { keys, "client-fingerprint": browser });
      await using engine = await openTrojanEngine(server.port, client);
      for (let count = 1; count < 4; count++) {
        assert.equal(await ping(engine), "ping");
        await until("it is reported", () => engine.served.length === count);
      }
      assert.equal(engine.handedOver + engine.asked.length, 0);
      assert.deepEqual(server.refused, []);
    },
  );

/** Counts what clients of a site do. */
function watching() {
  const seen = { clients: 0, ended: 0, bytes: 0 };
  const on = (socket: TLSSocket): void => {
    seen.clients++;
    socket.on("data", (bytes: Buffer) => (seen.bytes += bytes.length));
    socket.on("end", () => seen.ended++);
  };
  return { seen, on };
}

test(
  "the real site sees a handshake and its end, and the main thread goes on with it",
  { skip },
  async () => {
    const { seen, on } = watching();
    await using dest = await openTlsOrigin({ cert: site.cert, key: site.key }, on);
    const client = await realityClient(tlsProvider, {});
    await using engine = await openTrojanEngine(dest.port, client);
    for (let count = 1; count < 4; count++) {
      await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
      await until("the event loop has the client", () => engine.handedOver === count);
    }
    await until("the site has seen the end", () => seen.ended === 1);
    assert.deepEqual(seen, { clients: 1, ended: 1, bytes: 0 });
    assert.equal(engine.served.length, 0);
  },
);

const BAD: readonly (readonly [what: string, keys: object])[] = [
  ["another short id, in front of a site of no known authority", { "short-id": "ffff" }],
  ["no signature of the key", { "mldsa65-verify": mldsa65Verify }],
];
for (const [what, keys] of BAD)
  test(`nothing is sent to a server: ${what}`, { skip }, async () => {
    await using dest = await openSite();
    let streams = 0;
    await using server = await openReality({ dest: dest.port, on: () => streams++ });
    await using engine = await openTrojanEngine(
      server.port,
      await realityClient(tlsProvider, { keys, trusts: false }),
    );
    for (let count = 1; count < 3; count++) {
      await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
      await until("the event loop has the client", () => engine.handedOver === count);
    }
    assert.equal(engine.served.length + streams, 0);
  });

test("a hello that was drawn for this program is the main thread's", { skip }, async () => {
  const client = await realityClient(tlsProvider, { "client-fingerprint": "randomized" });
  assert.equal(client.recipe?.() ?? null, null);
});
