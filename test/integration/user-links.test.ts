/** What `/sub` hands out works in another program, and says nothing to a client that has no right to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLink } from "#protocols/share-links/index.ts";
import { FLEET_VARIABLE } from "../support/fleet-beside.ts";
import { ManagedCore } from "../support/managed-core.ts";
import { proveSilence, shownSilence } from "../proofs/users-sub.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { openRawClient } from "../support/raw-client.ts";
import { CARRIERS, carrierListeners } from "../support/user-traffic.ts";

const isFleet = FLEET_VARIABLE in process.env;
const HOSTILE = `<b>"Ann" #1</b> & 'co' 😀 \\ %2F?x=y`;

/** What v2ray's JSON wants of a link that weir has read. */
function v2rayOutbound(node: Readonly<Record<string, unknown>>): object {
  const { server, port, uuid, network, servername, tls } = node;
  const path = (node["ws-opts"] as { readonly path?: string } | undefined)?.path;
  return {
    protocol: "vless",
    settings: { vnext: [{ address: server, port, users: [{ id: uuid, encryption: "none" }] }] },
    streamSettings: {
      network: network ?? "tcp",
      ...(tls === true
        ? { security: "tls", tlsSettings: { serverName: servername, allowInsecure: true } }
        : {}),
      ...(path === undefined ? {} : { wsSettings: { path } }),
    },
  };
}

for (const backend of CARRIERS.filter(({ tag }) => tag === "tls" || tag === "ws"))
  test(
    `${backend.tag}: v2ray gets through with the link of a subscription`,
    { skip: missing("v2ray"), timeout: 60_000 },
    async () => {
      await using core = await ManagedCore.start({
        ...carrierListeners([backend]),
        baseUrl: "https://localhost",
      });
      await using origin = await openTcpOrigin(echo);
      const user = await core.create(backend.tag, HOSTILE);
      const served = await core.ask("GET", new URL(user.subscription_url).pathname, { secret: null });
      const links = Buffer.from(served.text, "base64").toString().split("\n"); // of a fleet one a node, by name
      const node = parseLink(links.at(-1) ?? "");
      assert.equal(node["name"], isFleet ? `${HOSTILE} · own` : `${backend.tag} - ${HOSTILE}`);
      const port = await freePort();
      const config = {
        log: { loglevel: "warning" },
        inbounds: [
          {
            listen: "127.0.0.1",
            port,
            protocol: "dokodemo-door",
            settings: { address: "127.0.0.1", port: origin.port, network: "tcp" },
          },
        ],
        outbounds: [v2rayOutbound(node)],
      };
      const files = { "config.json": JSON.stringify(config) };
      await using _peer = await startPeerWithFiles(["v2ray", "-config", "{}/config.json"], port, files);
      using client = await openRawClient(port);
      client.send(Buffer.from("through the link"));
      assert.equal((await client.read(16)).toString(), "through the link");
      const { upload_bytes, download_bytes } = await core.user(user.id);
      assert.deepEqual([upload_bytes, download_bytes], [16, 16]);
    },
  );

test("every kind of subscription that there is not is answered with the same bytes", async (context) => {
  const found = await proveSilence(20);
  context.diagnostic(shownSilence(found));
  assert.ok(found.length >= 6);
  assert.deepEqual(new Set(found.map(({ answer }) => answer)).size, 1);
  assert.match(found[0]?.answer ?? "", /^HTTP\/1\.1 404 /);
});
