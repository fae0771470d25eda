/** Our client against our server. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { outboundContract } from "../contract/outbound.ts";
import { makeCertificate } from "../support/certificate.ts";
import { outcome, roundTrip } from "../support/client.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient, openPair, openServer } from "../support/protocol-pair.ts";

const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const other = "11111111-2222-4333-8444-555555555555";
const SERVER = {
  users: [
    { username: "ada", uuid },
    { username: "bob", uuid: other },
  ],
};
const CLIENT = { uuid, udp: true };
const context = () => ({ signal: new AbortController().signal, metadata: null });
const certificate = makeCertificate({ names: ["example.com"] });
const TLS = { certificate: certificate.cert, "private-key": certificate.key };
const TLS_CLIENT = { tls: true, servername: "example.com", fingerprint: certificate.fingerprint };
const ONE_PEER = "plain datagrams have one destination a stream";

outboundContract("vmess xudp", () => openPair(vmess, SERVER, vmess, { ...CLIENT, xudp: true }), {
  udp: true,
});
outboundContract(
  "vmess packetaddr, chacha20-poly1305, global padding, authenticated length",
  () =>
    openPair(vmess, SERVER, vmess, {
      ...CLIENT,
      cipher: "chacha20-poly1305",
      "packet-encoding": "packetaddr",
      "global-padding": true,
      "authenticated-length": true,
    }),
  { udp: true },
);
outboundContract("vmess none", () => openPair(vmess, SERVER, vmess, { ...CLIENT, cipher: "none" }), {
  udp: true,
  skip: { "udp echo": ONE_PEER },
});
outboundContract("vmess zero", () => openPair(vmess, SERVER, vmess, { ...CLIENT, cipher: "zero" }), {
  udp: true,
  skip: { "udp echo": ONE_PEER },
});
outboundContract(
  "vmess ws tls",
  () =>
    openPair(vmess, { ...SERVER, ...TLS, "ws-path": "/x" }, vmess, {
      ...CLIENT,
      ...TLS_CLIENT,
      xudp: true,
      network: "ws",
      "ws-opts": { path: "/x" },
    }),
  { udp: true },
);

describe("vmess", () => {
  test("16 MiB both ways", async () => {
    for (const cipher of ["aes-128-gcm", "chacha20-poly1305"]) {
      await using pair = await openPair(vmess, SERVER, vmess, { ...CLIENT, cipher });
      await using origin = await openTcpOrigin(echo);
      await roundTrip(await pair.outbound.connect(origin.destination, context()), 16 << 20);
    }
  });

  test("grpc and h2 carry it", async () => {
    for (const network of ["grpc", "h2"]) {
      const server =
        network === "grpc"
          ? { "grpc-service-name": "svc" }
          : { "h2-config": { path: "/h", host: ["example.com"] } };
      const client = {
        network,
        "grpc-opts": { "grpc-service-name": "svc" },
        "h2-opts": { path: "/h", host: ["example.com"] },
      };
      await using pair = await openPair(vmess, { ...SERVER, ...TLS, ...server }, vmess, {
        ...CLIENT,
        ...TLS_CLIENT,
        ...client,
      });
      await using origin = await openTcpOrigin(echo);
      await roundTrip(await pair.outbound.connect(origin.destination, context()), 300_000);
    }
  });

  test("plain datagrams to one peer", async () => {
    await using pair = await openPair(vmess, SERVER, vmess, CLIENT);
    await using origin = await openUdpEcho();
    await using flow = await pair.outbound.associate(origin.destination, context());
    const got: string[] = [];
    const done = new Promise<void>((resolve) => {
      flow.receive(({ payload }) => {
        got.push(Buffer.from(payload).toString());
        if (got.length === 3) resolve();
      });
    });
    for (const text of ["one", "two", "three"])
      flow.send({ payload: Buffer.from(text), destination: origin.destination });
    await done;
    assert.deepEqual(got, ["one", "two", "three"]);
  });

  test("users: named, cut off when taken away, others untouched", async () => {
    await using server = await openServer(vmess, SERVER);
    await using origin = await openTcpOrigin(echo);
    const node = { server: "127.0.0.1", port: server.port };
    await using ada = await openClient(vmess, { ...node, uuid });
    await using bob = await openClient(vmess, { ...node, uuid: other });
    const hers = await ada.connect(origin.destination, context());
    const his = await bob.connect(origin.destination, context());
    for (const stream of [hers, his]) {
      stream.write("x");
      await once(stream, "data");
    }
    assert.deepEqual(new Set(server.sessions.map(({ inbound }) => inbound.user)), new Set(["ada", "bob"]));
    const gone = outcome(hers);
    hers.once("end", () => hers.destroy());
    (server.inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: other, flow: null }]);
    await gone;
    his.write("y");
    await once(his, "data");
    his.destroy();
  });

  test("a stranger hears nothing and is not cut off", async () => {
    await using server = await openServer(vmess, SERVER);
    const probe = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    probe.on("data", () => assert.fail("answered a stranger"));
    await once(probe, "connect");
    for (let round = 0; round < 20; round++) {
      probe.write(randomBytes(100));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(probe.readableEnded, false);
    const ended = once(probe, "end");
    probe.end();
    await ended;
    assert.equal(server.sessions.length, 0);
  });
});
