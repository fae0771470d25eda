/** Our client against our server, VLESS and Trojan inside, over every transport. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { inbox, readAll } from "../support/client.ts";
import { exchange } from "../support/exchange.ts";
import { countThenAnswer, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openPair } from "../support/protocol-pair.ts";
import { clientTls, serverTls, uuid } from "../support/tls-sides.ts";

const BULK_BYTES = 16 << 20;

interface Case {
  readonly name: string;
  readonly server: object;
  readonly client: object;
  /** Only TLS-less transports of VLESS. */
  readonly plain?: true;
  /** The carrier cannot end the upper direction alone. */
  readonly noHalfClose?: true;
}

const cases: readonly Case[] = [
  { name: "tcp", server: { "allow-insecure": true }, client: {}, plain: true },
  { name: "tls", server: serverTls, client: clientTls },
  {
    name: "ws",
    server: { "allow-insecure": true, "ws-path": "/ws" },
    client: { network: "ws", "ws-opts": { path: "/ws" } },
    plain: true,
  },
  {
    name: "ws, tls, early data",
    server: { ...serverTls, "ws-path": "/ws?ed=2048" },
    client: {
      ...clientTls,
      network: "ws",
      "ws-opts": { path: "/ws?ed=2048", headers: { Host: "cdn.test", "X-Extra": "1" } },
    },
  },
  {
    name: "httpupgrade, tls",
    server: { ...serverTls, "ws-path": "/up" },
    client: { ...clientTls, network: "ws", "ws-opts": { path: "/up", "v2ray-http-upgrade": true } },
  },
  {
    name: "httpupgrade, fast open",
    server: { ...serverTls, "ws-path": "/up" },
    client: {
      ...clientTls,
      network: "ws",
      "ws-opts": { path: "/up", "v2ray-http-upgrade": true, "v2ray-http-upgrade-fast-open": true },
    },
  },
  {
    name: "grpc, plain",
    server: { "allow-insecure": true, "grpc-service-name": "Gun" },
    client: { network: "grpc", "grpc-opts": { "grpc-service-name": "Gun" } },
    plain: true,
  },
  {
    name: "grpc, tls, beside ws",
    server: { ...serverTls, "grpc-service-name": "/a/b/One|Many", "ws-path": "/ws" },
    client: {
      ...clientTls,
      network: "grpc",
      "grpc-opts": { "grpc-service-name": "/a/b/One|Many", "ping-interval": 1 },
    },
  },
  {
    name: "h2, tls",
    server: { ...serverTls, "h2-config": { host: ["a.test", "b.test"], path: "/h2" } },
    client: { ...clientTls, network: "h2", "h2-opts": { host: ["a.test", "b.test"], path: "/h2" } },
  },
  {
    name: "xhttp packet-up, tls",
    server: { ...serverTls, "xhttp-config": { path: "/x" } },
    client: {
      ...clientTls,
      network: "xhttp",
      "xhttp-opts": { path: "/x?a=1", "sc-min-posts-interval-ms": 1 },
    },
    noHalfClose: true,
  },
  {
    name: "xhttp stream-one",
    server: { "allow-insecure": true, "xhttp-config": { path: "/x/" } },
    client: { network: "xhttp", "xhttp-opts": { path: "/x/", mode: "stream-one", host: "cdn.test" } },
    plain: true,
  },
  {
    name: "xhttp stream-one, tls",
    server: { ...serverTls, "xhttp-config": { path: "/x/" } },
    client: { ...clientTls, network: "xhttp", "xhttp-opts": { path: "/x/", mode: "stream-one" } },
  },
  {
    name: "xhttp stream-up, tls",
    server: { ...serverTls, "xhttp-config": { path: "/x/" } },
    client: { ...clientTls, network: "xhttp", "xhttp-opts": { path: "/x/", mode: "stream-up" } },
  },
  ...(["packet-up", "stream-one", "stream-up"] as const).map((mode) => ({
    name: `xhttp ${mode} over HTTP/1.1, tls, beside ws`,
    server: { ...serverTls, "xhttp-config": { path: "/x" }, "ws-path": "/ws" },
    client: {
      ...clientTls,
      alpn: ["http/1.1"],
      network: "xhttp",
      "xhttp-opts": { path: "/x?a=1", mode, "sc-min-posts-interval-ms": 1 },
    },
    ...(mode === "packet-up" ? ({ noHalfClose: true } as const) : {}),
  })),
  {
    name: "xhttp over HTTP/1.1 without TLS",
    server: { "allow-insecure": true, "xhttp-config": { path: "/x/" } },
    client: { alpn: ["http/1.1"], network: "xhttp", "xhttp-opts": { path: "/x/", mode: "stream-one" } },
    plain: true,
  },
];

for (const [protocol, credential, users] of [
  [vless, { uuid }, [{ username: "ann", uuid }]],
  [trojan, { password: "letmein" }, [{ username: "ann", password: "letmein" }]],
] as const) {
  describe(`${protocol.type} over`, () => {
    for (const { name, server, client, plain, noHalfClose } of cases) {
      const network = (client as { network?: string }).network;
      if (protocol === trojan && (plain || network === "h2" || network === "xhttp")) continue;
      const open = () =>
        openPair(protocol, { ...server, users }, protocol, { ...client, ...credential, udp: true });

      test(`${name}: 16 MiB each way, by name and by address`, { timeout: 60_000 }, async () => {
        await using pair = await open();
        await exchange(pair.outbound, BULK_BYTES);
        await exchange(pair.outbound, 100_000, { pieceBytes: 777, host: "origin.test" });
        const [first, second] = pair.server.sessions;
        assert.equal(first?.inbound.user, "ann");
        assert.equal(second?.destination.host, "origin.test");
      });

      test(
        `${name}: half-close, concurrent streams, a server that speaks first`,
        { timeout: 30_000 },
        async () => {
          await using pair = await open();
          await using origin = await openTcpOrigin(countThenAnswer);
          await using greeter = await openTcpOrigin((socket) => void socket.write("220 hello\r\n"));
          const signal = AbortSignal.timeout(20_000);
          const concurrent = noHalfClose ? 0 : 8;
          const counts = Array.from({ length: concurrent }, async (_, index) => {
            const stream = await pair.outbound.connect(origin.destination, { signal, metadata: null });
            if (noHalfClose) stream.write(Buffer.alloc(1000 + index));
            else stream.end(Buffer.alloc(1000 + index));
            const answer = String(await readAll(stream));
            stream.destroy();
            return answer;
          });
          assert.deepEqual(
            await Promise.all(counts),
            Array.from({ length: concurrent }, (_, index) => `${1000 + index}`),
          );
          const silent = await pair.outbound.connect(greeter.destination, { signal, metadata: null });
          const [greeting] = (await Array.fromAsync(firstOf(silent))) as [Buffer];
          assert.equal(String(greeting), "220 hello\r\n");
          silent.on("error", () => {}).destroy();
        },
      );

      test(`${name}: datagrams`, { timeout: 30_000 }, async () => {
        await using pair = await open();
        await using one = await openUdpEcho();
        await using two = await openUdpEcho();
        const signal = AbortSignal.timeout(20_000);
        const flow = await pair.outbound.associate(one.destination, { signal, metadata: null });
        const box = inbox(flow);
        for (const [origin, size] of [
          [one, 1],
          [two, 1200],
          [one, 8000],
        ] as const) {
          const payload = Buffer.alloc(size, size & 0xff);
          flow.send({ payload, destination: origin.destination });
          const answer = await box.next();
          assert.deepEqual(Buffer.from(answer.payload), payload);
          assert.equal(answer.destination.port, origin.port);
        }
        await flow[Symbol.asyncDispose]();
      });
    }
  });
}

async function* firstOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of stream) {
    yield chunk;
    return;
  }
}
