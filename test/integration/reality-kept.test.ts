/** Handshakes of REALITY in workers: what becomes of clients and visitors beside those who are simply let in. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import { newSeamMemory, SEAMS } from "#dataplane/workers/shared/seams.ts";
import { vless } from "#protocols/vless/index.ts";
import { COMMAND_TCP, encodeRequest } from "#protocols/vless/wire.ts";
import { echoed, outcome } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { type KeptClients, openKeptClients } from "../support/kept-clients.ts";
import { toDestination } from "#net/address/ip.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import {
  dialReality,
  helloWithToken,
  listening,
  openSite,
  plainHello,
  privateKey,
  publicKey,
  readAll,
  SHORT_ID,
  SITE,
} from "../support/reality.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP handshakes in workers: needs Linux";
/** A record of ChangeCipherSpec. */
const CHANGE = Buffer.from("140303000101", "hex");
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";

const open = (dest: number, more: object = {}, seams?: SharedArrayBuffer): Promise<KeptClients> => {
  const options = {
    users: [{ username: "ann", uuid }],
    "reality-config": {
      dest: `127.0.0.1:${dest}`,
      "private-key": privateKey,
      "short-id": [SHORT_ID],
      "server-names": [SITE],
      ...more,
    },
  };
  return openKeptClients(vless, options, 1, seams);
};

async function dial(port: number, to: number, keys: object = {}) {
  const client = {
    server: "127.0.0.1",
    port,
    uuid,
    tls: true,
    servername: SITE,
    "client-fingerprint": "chrome",
    "reality-opts": { "public-key": publicKey, "short-id": SHORT_ID, ...keys },
  };
  const outbound = await openClient(vless, client, { dialer: directDialer });
  const context = { signal: AbortSignal.timeout(20_000), metadata: null };
  const stream = await outbound.connect(toDestination("127.0.0.1", to), context);
  return stream.on("error", () => {});
}

async function visit(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  await once(
    socket.on("error", () => {}),
    "connect",
  );
  return socket;
}

for (const [group, hybrid] of [
  ["X25519", false],
  ["X25519MLKEM768", true],
] as const)
  test(`many clients at once, where the site chooses ${group}`, { skip }, async () => {
    await using site = await openSite({ ecdhCurve: group });
    await using server = await open(site.port);
    await using origin = await openTcpOrigin(echo);
    const keys = { "support-x25519mlkem768": hybrid };
    const streams = await Promise.all(Array.from({ length: 20 }, () => dial(server.port, origin.port, keys)));
    await Promise.all(streams.map((stream) => echoed(stream, 500)));
    assert.equal(server.kept.length, 20);
    for (const stream of streams) stream.end();
    await until("all have ended", () => server.ended.length === 20);
  });

test(
  "who comes while it is not known how the site is reached is the event loop's, but not behind a pause",
  { skip },
  async (context) => {
    await using site = await openSite();
    await using server = await open(site.port, { proxy: "" });
    await using origin = await openTcpOrigin(echo);
    const [seconds] = process.hrtime();
    const past = context.mock.method(process, "hrtime", () => [seconds - 60, 0]);
    await delay(2_500); // what is written now is out of date at once
    const first = await dial(server.port, origin.port);
    await echoed(first, 1_000);
    assert.equal(server.kept.length, 0);
    past.mock.restore();
    await delay(5_500); // what the threads know is good for five seconds
    const second = await dial(server.port, origin.port);
    await echoed(second, 1_000);
    assert.equal(server.kept.length, 1);
    for (const stream of [first, second]) stream.destroy();
  },
);

test(
  "a listener that goes: who is silent goes on, who has begun is let in, who repeats a hello is dest's",
  { skip },
  async () => {
    await using site = await openSite();
    let isHeld = true;
    const held: (() => void)[] = [];
    await using slow = await listening(
      createServer({ allowHalfOpen: true }, (near) => {
        const far = connect({ port: site.port, host: "127.0.0.1", allowHalfOpen: true });
        far.on("error", () => near.destroy()).pipe(near);
        near.once("close", () => far.destroy());
        const pass = (): void => void near.pipe(far);
        if (isHeld) held.push(pass);
        else pass();
      }),
    );
    await using server = await open(slow.port);
    await using origin = await openTcpOrigin(echo);
    await until("the site was asked in advance", () => held.length === 1);
    const silent = await visit(server.port);
    const begun = dial(server.port, origin.port);
    const repeated = await visit(server.port);
    repeated.write(helloWithToken());
    await until("all have come", () => held.length === 4);
    await delay(100); // the hellos have been read
    const stopped = server.stopAccepting();
    isHeld = false;
    for (const pass of held) pass();
    const stream = await begun;
    await echoed(stream, 1_000);
    silent.write(plainHello());
    const [shown] = (await once(silent, "data")) as [Buffer];
    assert.equal(shown[0], 22);
    await stopped;
    repeated.end(Buffer.alloc(200, 23));
    await Promise.race([outcome(repeated), readAll(repeated)]);
    for (const socket of [silent, stream, repeated]) socket.destroy();
  },
);

test("a site that is not there: closed without a byte", { skip }, async () => {
  const site = await openSite();
  await using server = await open(site.port);
  await site[Symbol.asyncDispose]();
  const visitor = await visit(server.port);
  visitor.write(helloWithToken());
  const heard = await Promise.race([readAll(visitor), outcome(visitor).then(() => Buffer.alloc(0))]);
  assert.equal(heard.length, 0);
});

test("a visitor who breaks off breaks off with the site, and the other way round", { skip }, async () => {
  const seen: Socket[] = [];
  await using site = await listening(createServer((socket) => void seen.push(socket)));
  await using server = await open(site.port);
  await until("the site was asked in advance", () => seen.length === 1);
  const gone = await visit(server.port);
  gone.write("GET");
  await until("it has come", () => seen.length === 2);
  gone.resetAndDestroy();
  await until("the site has noticed", () => (seen[1] as Socket).destroyed);
  const left = await visit(server.port);
  left.write("GET");
  await until("it has come", () => seen.length === 3);
  (seen[2] as Socket).resetAndDestroy();
  await until("the visitor has noticed", () => left.destroyed);
  assert.ok(left.errored !== null);
});

test(
  "who repeats a hello, and floods with what means nothing, holds up no other client",
  { skip },
  async () => {
    await using site = await openSite();
    await using server = await open(site.port);
    await using origin = await openTcpOrigin(echo);
    const hostile = await visit(server.port);
    hostile.write(helloWithToken());
    await once(hostile, "data");
    const changes = Buffer.alloc(600_000, CHANGE);
    const say = (): void => {
      while (!hostile.destroyed && hostile.writableLength < 8 * changes.length) hostile.write(changes);
    };
    say();
    const flood = setInterval(say, 1);
    const stream = await dial(server.port, origin.port);
    await echoed(stream, 1_000);
    clearInterval(flood);
    for (const socket of [hostile, stream]) socket.destroy();
  },
);

test(
  "who ends the connection with the end of its handshake, having said all, is half-closed",
  { skip },
  async () => {
    const heard: Buffer[] = [];
    let hasEnded = false;
    await using origin = await openTcpOrigin((far) =>
      far.on("data", (bytes: Buffer) => heard.push(bytes)).on("end", () => (hasEnded = true)),
    );
    await using site = await openSite();
    const seams = newSeamMemory();
    await using server = await open(site.port, {}, seams);
    using sockets = new DisposableStack();
    const socket = sockets.adopt(await visit(server.port), (one) => void one.destroy());
    socket.prependOnceListener("data", () => socket.cork());
    const stream = await dialReality(socket);
    const destination = toDestination("127.0.0.1", origin.port);
    const request = encodeRequest(Buffer.from(uuid.replaceAll("-", ""), "hex"), {
      flow: "",
      command: COMMAND_TCP,
      destination,
    });
    for (const said of [request, Buffer.from("ping")]) stream.write(said); // a record each
    // The worker stands still while all of it comes.
    const lastsMs = new Int32Array(seams);
    const admitted = SEAMS.indexOf("admitted");
    lastsMs[admitted] = 10_000;
    sockets.adopt(await visit(server.port), (other) => void other.destroy());
    await delay(100);
    socket.end();
    await once(socket, "finish");
    await delay(50);
    lastsMs[admitted] = 0;
    Atomics.notify(lastsMs, admitted);
    await until("its end has been passed on", () => hasEnded, { withinMs: 5_000 });
    assert.equal(String(Buffer.concat(heard)), "ping");
  },
);
