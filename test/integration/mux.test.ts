/** What a multiplexed connection means for the rest: users, options, unauthenticated clients. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { roundTrip } from "../support/client.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient, openPair, openServer } from "../support/protocol-pair.ts";

const ann = "b831381d-6324-4d53-ad4f-8cda48b30811";
const bob = "d831381d-6324-4d53-ad4f-8cda48b30822";
const smux = { enabled: true, protocol: "yamux", "max-connections": 1 };
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });

test("a removed user loses every stream, others keep theirs", { timeout: 30_000 }, async () => {
  const users = [
    { username: "ann", uuid: ann },
    { username: "bob", uuid: bob },
  ];
  await using serving = await openServer(vless, { "allow-insecure": true, users });
  await using origin = await openTcpOrigin(echo);
  const node = { server: "127.0.0.1", port: serving.port, smux };
  await using first = await openClient(vless, { ...node, uuid: ann });
  await using second = await openClient(vless, { ...node, uuid: bob });
  const streams = [];
  for (const outbound of [first, first, second]) {
    const stream = await outbound.connect(origin.destination, context());
    stream.on("error", () => {}).write("x");
    await once(stream, "data");
    streams.push(stream);
  }
  assert.deepEqual(
    serving.sessions.map(({ inbound }) => inbound.user),
    ["ann", "ann", "bob"],
  );
  const [one, two, kept] = streams;
  const gone = Promise.all(
    [one, two].map((stream) => new Promise((resolve) => stream?.once("close", resolve))),
  );
  (serving.inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: bob, flow: null }]);
  await gone;
  kept?.write("y");
  assert.equal(String((await once(kept as NonNullable<typeof kept>, "data"))[0]), "y");
  kept?.destroy();
});

test("a listener that asks for padding refuses a client without", { timeout: 30_000 }, async () => {
  const secret = { cipher: "aes-128-gcm", password: "p" };
  const server = { ...secret, udp: false, "mux-option": { padding: true } };
  await using plain = await openPair(shadowsocks, server, ss, { ...secret, smux });
  await using padded = await openPair(shadowsocks, server, ss, {
    ...secret,
    smux: { ...smux, padding: true },
  });
  await using origin = await openTcpOrigin(echo);
  const refused = await plain.outbound.connect(origin.destination, context());
  await assert.rejects(roundTrip(refused, 10));
  await roundTrip(await padded.outbound.connect(origin.destination, context()), 100_000);
});

test("the streams carry datagrams of a node without udp; what goes beside them needs it", async () => {
  const secret = { cipher: "aes-128-gcm", password: "p" };
  const pairOf = (more: object) =>
    openPair(shadowsocks, { ...secret, udp: false }, ss, { ...secret, smux: { ...smux, ...more } });
  await using shared = await pairOf({});
  await using origin = await openUdpEcho();
  await using flow = await shared.outbound.associate(origin.destination, context());
  const answered = new Promise((resolve) => flow.receive(({ payload }) => resolve(String(payload))));
  flow.send({ payload: Buffer.from("x"), destination: origin.destination });
  assert.equal(await answered, "x");
  assert.ok(shared.outbound.networks.has("udp"));
  await using beside = await pairOf({ "only-tcp": true });
  await using cool = await pairOf({ protocol: "mux.cool" });
  for (const { outbound } of [beside, cool]) {
    assert.ok(!outbound.networks.has("udp"));
    await assert.rejects(outbound.associate(origin.destination, context()), /udp is not enabled/);
  }
});

test("what cannot be is refused when the file is read", () => {
  const node = { server: "a.example", port: 1, cipher: "aes-128-gcm", password: "p" };
  const faultOf = (options: object): string => {
    const result = ss.outbound?.schema.safeParse({ ...node, smux: options });
    return result?.error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join() ?? "";
  };
  assert.equal(faultOf({ enabled: true, "brutal-opts": { enabled: false, up: "50" } }), "");
  assert.match(
    faultOf({ enabled: true, "brutal-opts": { enabled: true } }),
    /brutal-opts\.enabled: TCP Brutal/,
  );
  assert.match(faultOf({ "max-streams": 4, "min-streams": 2 }), /max-streams: excludes/);
  assert.match(faultOf({ protocol: "quic" }), /protocol: expected one of smux, yamux, h2mux/);
});
