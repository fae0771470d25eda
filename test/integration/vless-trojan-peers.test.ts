/** VLESS and Trojan against v2ray and trojan, both directions. The results are the matrix of docs/interop.md. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { Outbound } from "#core/outbound.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { datagramReply, echoed, inbox } from "../support/client.ts";
import { exchange } from "../support/exchange.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { certificate, clientTls, password, serverTls, uuid } from "../support/tls-sides.ts";

const BULK_BYTES = 4 << 20;

interface Carrier {
  readonly name: string;
  /** Ours. */
  readonly server: object;
  readonly client: object;
  /** v2ray's streamSettings. */
  readonly stream: object;
}

const carriers: readonly Carrier[] = [
  { name: "tcp", server: { "allow-insecure": true }, client: {}, stream: { network: "tcp" } },
  { name: "tls", server: serverTls, client: clientTls, stream: { network: "tcp", security: "tls" } },
  {
    name: "ws",
    server: { "allow-insecure": true, "ws-path": "/ws" },
    client: { network: "ws", "ws-opts": { path: "/ws" } },
    stream: { network: "ws", wsSettings: { path: "/ws" } },
  },
  {
    name: "ws, tls",
    server: { ...serverTls, "ws-path": "/ws" },
    client: { ...clientTls, network: "ws", "ws-opts": { path: "/ws" } },
    stream: { network: "ws", security: "tls", wsSettings: { path: "/ws" } },
  },
  {
    name: "h2, tls",
    server: { ...serverTls, "h2-config": { host: ["server.test"], path: "/h2" } },
    client: { ...clientTls, network: "h2", "h2-opts": { host: ["server.test"], path: "/h2" } },
    stream: { network: "http", security: "tls", httpSettings: { host: ["server.test"], path: "/h2" } },
  },
  {
    name: "http header",
    server: {},
    client: { network: "http", "http-opts": { path: ["/"], headers: { Host: ["server.test"] } } },
    stream: {
      network: "tcp",
      tcpSettings: { header: { type: "http", request: { path: ["/"] }, response: {} } },
    },
  },
];

const lines = (pem: string): string[] => pem.trim().split("\n");
const v2rayServerTls = {
  alpn: ["h2", "http/1.1"],
  certificates: [{ certificate: lines(certificate.cert), key: lines(certificate.key) }],
};
const v2rayClientTls = { serverName: "server.test", allowInsecure: true };

interface Spoken {
  readonly protocol: typeof vless;
  readonly users: readonly object[];
  readonly credential: object;
  readonly v2rayInbound: object;
  readonly v2rayOutbound: (port: number) => object;
}

const spoken: readonly Spoken[] = [
  {
    protocol: vless,
    users: [{ username: "ann", uuid }],
    credential: { uuid },
    v2rayInbound: { clients: [{ id: uuid }], decryption: "none" },
    v2rayOutbound: (port) => ({
      vnext: [{ address: "127.0.0.1", port, users: [{ id: uuid, encryption: "none" }] }],
    }),
  },
  {
    protocol: trojan,
    users: [{ username: "ann", password }],
    credential: { password },
    v2rayInbound: { clients: [{ password }] },
    v2rayOutbound: (port) => ({ servers: [{ address: "127.0.0.1", port, password }] }),
  },
];

function v2ray(config: object, port: number): Promise<AsyncDisposable> {
  const text = JSON.stringify({ log: { loglevel: "warning" }, ...config });
  return startPeerWithFiles(["v2ray", "-config", "{}/config.json"], port, { "config.json": text });
}

async function pingUdp(outbound: Outbound): Promise<void> {
  await using one = await openUdpEcho();
  const flow = await outbound.associate(one.destination, {
    signal: AbortSignal.timeout(10_000),
    metadata: null,
  });
  const box = inbox(flow);
  for (const size of [5, 1200]) {
    flow.send({ payload: Buffer.alloc(size, 1), destination: one.destination });
    const answer = await box.next();
    assert.equal(answer.payload.length, size);
    assert.equal(answer.destination.port, one.port);
  }
  await flow[Symbol.asyncDispose]();
}

/** A peer's local port that leads to an echo: what a client of the peer would do. */
async function throughPort(port: number, size: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  await echoed(socket, size);
  socket.destroy();
}

async function udpThroughPort(port: number): Promise<void> {
  for (const size of [5, 1200]) assert.equal((await datagramReply(port, Buffer.alloc(size, 2))).length, size);
}

describe("v2ray", { skip: missing("v2ray") }, () => {
  for (const { protocol, users, credential, v2rayInbound, v2rayOutbound } of spoken) {
    for (const { name, server, client, stream } of carriers) {
      const network = (client as { network?: string }).network ?? "tcp";
      const tls = (stream as { security?: string }).security === "tls";
      if (protocol === trojan && (!tls || network === "h2")) continue;

      test(`${protocol.type}, ${name}: our client, its server`, { timeout: 60_000 }, async () => {
        const port = await freePort();
        const inbound = {
          listen: "127.0.0.1",
          port,
          protocol: protocol.type,
          settings: v2rayInbound,
          streamSettings: { ...stream, tlsSettings: v2rayServerTls },
        };
        await using _peer = await v2ray({ inbounds: [inbound], outbounds: [{ protocol: "freedom" }] }, port);
        const options = { server: "127.0.0.1", port, ...client, ...credential, udp: true };
        await using outbound = await openClient(protocol, options);
        await exchange(outbound, BULK_BYTES);
        if (protocol === trojan) return await pingUdp(outbound);
        // This v2ray is older than packetaddr and XUDP.
        await using plain = await openClient(protocol, { ...options, "packet-encoding": "none" });
        await pingUdp(plain);
      });

      if (name === "http header") continue; // a client's transport only

      // Of Trojan's mux extensions none is spoken.
      for (const mux of protocol === trojan ? [false] : [false, true]) {
        const how = mux ? ", mux" : "";
        test(`${protocol.type}, ${name}${how}: its client, our server`, { timeout: 60_000 }, async () => {
          await using serving = await openServer(protocol, { ...server, users });
          await using origin = await openTcpOrigin(echo);
          await using udp = await openUdpEcho();
          const [port, udpPort] = [await freePort(), await freePort()];
          const door = (listen: number, to: number, kind: string) => ({
            listen: "127.0.0.1",
            port: listen,
            protocol: "dokodemo-door",
            settings: { address: "127.0.0.1", port: to, network: kind },
          });
          const outbound = {
            protocol: protocol.type,
            settings: v2rayOutbound(serving.port),
            streamSettings: { ...stream, tlsSettings: v2rayClientTls },
            mux: { enabled: mux, concurrency: 8 },
          };
          const inbounds = [door(port, origin.port, "tcp"), door(udpPort, udp.port, "udp")];
          await using _peer = await v2ray({ inbounds, outbounds: [outbound] }, port);
          await Promise.all([1, 100_000, BULK_BYTES].map((size) => throughPort(port, size)));
          await udpThroughPort(udpPort);
          const names = new Set(serving.sessions.map(({ inbound }) => inbound.user));
          assert.deepEqual([...names], ["ann"]);
        });
      }
    }
  }
});

describe("trojan", { skip: missing("trojan") }, () => {
  const startTrojan = (config: object, port: number): Promise<AsyncDisposable> =>
    startPeerWithFiles(["trojan", "-c", "{}/config.json"], port, {
      "c.pem": certificate.cert,
      "k.pem": certificate.key,
      "config.json": JSON.stringify(config),
    });

  test("our client, its server", { timeout: 60_000 }, async () => {
    const port = await freePort();
    const config = {
      run_type: "server",
      local_addr: "127.0.0.1",
      local_port: port,
      remote_addr: "127.0.0.1",
      remote_port: 9,
      password: [password],
      ssl: { cert: "{}/c.pem", key: "{}/k.pem", alpn: ["h2", "http/1.1"] },
    };
    await using _peer = await startTrojan(config, port);
    const options = { server: "127.0.0.1", port, ...clientTls, password, udp: true };
    await using outbound = await openClient(trojan, options);
    await exchange(outbound, BULK_BYTES);
    await pingUdp(outbound);
  });

  test("its client, our server", { timeout: 60_000 }, async () => {
    await using serving = await openServer(trojan, { ...serverTls, users: [{ username: "ann", password }] });
    await using origin = await openTcpOrigin(echo);
    const port = await freePort();
    const config = {
      run_type: "forward",
      local_addr: "127.0.0.1",
      local_port: port,
      remote_addr: "127.0.0.1",
      remote_port: serving.port,
      target_addr: "127.0.0.1",
      target_port: origin.port,
      password: [password],
      ssl: { verify: false, verify_hostname: false, sni: "server.test", alpn: ["h2", "http/1.1"] },
    };
    await using _peer = await startTrojan(config, port);
    await throughPort(port, BULK_BYTES);
    assert.equal(serving.sessions.at(-1)?.inbound.user, "ann");
  });
});
