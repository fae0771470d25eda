/** Against v2ray as Debian packs it (v2ray 4.34), both directions. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { vmess } from "#protocols/vmess/index.ts";
import { datagramReply, roundTrip } from "../support/client.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { freePort, missing, type Peer, startPeer } from "../support/peer.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";

const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const context = () => ({ signal: new AbortController().signal, metadata: null });
const BULK_BYTES = 1 << 20;

async function startV2ray(config: object, port: number): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), "weir-v2ray-"));
  const path = join(folder, "config.json");
  writeFileSync(path, JSON.stringify({ log: { loglevel: "warning" }, ...config }));
  const peer = await startPeer(["v2ray", "-config", path], port);
  const dispose = async () => {
    await peer[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  };
  return { output: () => peer.output(), [Symbol.asyncDispose]: dispose };
}

const TRANSPORTS = {
  tcp: { ours: {}, theirs: {}, listener: {} },
  ws: {
    ours: { network: "ws", "ws-opts": { path: "/v" } },
    theirs: { network: "ws", wsSettings: { path: "/v" } },
    listener: { "ws-path": "/v" },
  },
  http: {
    ours: { network: "http", "http-opts": { method: "GET", path: ["/"] } },
    theirs: {
      network: "tcp",
      tcpSettings: { header: { type: "http", request: { path: ["/"], headers: { Host: ["127.0.0.1"] } } } },
    },
    listener: null, // a listener of ours has no such key
  },
} as const;

describe("v2ray's server, our client", { skip: missing("v2ray") }, () => {
  for (const [name, { ours, theirs }] of Object.entries(TRANSPORTS))
    test(name, { timeout: 40_000 }, async () => {
      const port = await freePort();
      const settings = { clients: [{ id: uuid, alterId: 0 }] };
      const inbound = { listen: "127.0.0.1", port, protocol: "vmess", settings, streamSettings: theirs };
      await using _peer = await startV2ray(
        { inbounds: [inbound], outbounds: [{ protocol: "freedom" }] },
        port,
      );
      await using origin = await openTcpOrigin(echo);
      await using udpOrigin = await openUdpEcho();
      for (const cipher of ["auto", "chacha20-poly1305", "none"])
        for (const padding of [false, true]) {
          const node = {
            server: "127.0.0.1",
            port,
            uuid,
            cipher,
            udp: true,
            "global-padding": padding,
            ...ours,
          };
          await using outbound = await openClient(vmess, node);
          await roundTrip(await outbound.connect(origin.destination, context()), BULK_BYTES);
          await using flow = await outbound.associate(udpOrigin.destination, context());
          const got = new Promise<{ payload: Uint8Array }>((resolve) => flow.receive(resolve));
          flow.send({ payload: Buffer.from("ping"), destination: udpOrigin.destination });
          assert.equal(Buffer.from((await got).payload).toString(), "ping", cipher);
        }
    });
});

describe("v2ray's client, our server", { skip: missing("v2ray") }, () => {
  for (const [name, { listener, theirs }] of Object.entries(TRANSPORTS)) {
    if (listener === null) continue;
    for (const security of ["aes-128-gcm", "chacha20-poly1305", "none"])
      test(`${name} ${security}`, { timeout: 40_000 }, async () => {
        await using server = await openServer(vmess, { users: [{ username: "ada", uuid }], ...listener });
        await using origin = await openTcpOrigin(echo);
        await using udpOrigin = await openUdpEcho();
        const [tcp, udp] = [await freePort(), await freePort()];
        const door = (port: number, to: number, network: string) => ({
          listen: "127.0.0.1",
          port,
          protocol: "dokodemo-door",
          settings: { address: "127.0.0.1", port: to, network },
        });
        const users = [{ id: uuid, alterId: 0, security }];
        const vnext = [{ address: "127.0.0.1", port: server.port, users }];
        const outbound = { protocol: "vmess", settings: { vnext }, streamSettings: theirs };
        const inbounds = [door(tcp, origin.port, "tcp"), door(udp, udpOrigin.port, "udp")];
        await using _peer = await startV2ray({ inbounds, outbounds: [outbound] }, tcp);
        await roundTrip(connect({ port: tcp, host: "127.0.0.1" }), BULK_BYTES);
        assert.equal(String(await datagramReply(udp, "datagram")), "datagram");
        assert.equal(server.sessions[0]?.inbound.user, "ada");
      });
  }
});
