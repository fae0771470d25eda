/** Our client against our server. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { VmessCodec } from "#protocols/vmess/codec.ts";
import * as header from "#protocols/vmess/header.ts";
import { commandKey } from "#protocols/vmess/kdf.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { outboundContract } from "../contract/outbound.ts";
import { makeCertificate } from "../support/certificate.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import { countThenAnswer, echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
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

/** A client's side, to be written by hand. */
function clientCodec(destination: Destination): VmessCodec {
  const request: header.RequestHeader = {
    iv: randomBytes(16),
    key: randomBytes(16),
    verifier: 7,
    options: header.OPTION_CHUNKS | header.OPTION_MASKING | header.OPTION_PADDING,
    security: header.SECURITY_AES,
    command: header.COMMAND_TCP,
    destination,
  };
  const userKey = commandKey(parseUserId(uuid) as Buffer);
  return new VmessCodec(request, header.sealRequest(userKey, request, header.newChance(Date.now())));
}

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

  test("a client that was silent at first and said so by an empty chunk, as Xray's does, goes on", async () => {
    await using server = await openServer(vmess, SERVER);
    await using origin = await openTcpOrigin((socket) => {
      socket.write("220 ready\n");
      socket.pipe(socket);
    });
    const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    const codec = clientCodec(origin.destination);
    socket.write(codec.sealEnd() as Buffer); // the header and the empty chunk
    let text = "";
    const ended = new Promise<void>((resolve) => {
      const take = (plain: Buffer | null) => {
        if (plain === null) return resolve();
        if (text === "") socket.write(codec.seal(Buffer.from("HELO")));
        text += plain.toString();
        if (text.endsWith("HELO")) socket.write(codec.sealEnd() as Buffer);
      };
      socket.on("data", (wire: Buffer) => codec.open(wire, take));
    });
    await ended;
    assert.equal(text, "220 ready\nHELO");
    socket.destroy();
    codec.close();
  });

  test("a client that ends without a word", async () => {
    await using pair = await openPair(vmess, SERVER, vmess, CLIENT);
    await using origin = await openTcpOrigin(countThenAnswer);
    const stream = await pair.outbound.connect(origin.destination, context());
    stream.end();
    assert.equal((await readAll(stream)).toString(), "0");
    stream.destroy();
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

  test("an unauthenticated client gets no byte and is not cut off", async () => {
    await using server = await openServer(vmess, SERVER);
    const probe = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    probe.on("data", () => assert.fail("answered an unauthenticated client"));
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
