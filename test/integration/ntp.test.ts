/** The section `ntp`: a server whose system clock is wrong serves clients whose clocks are right. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { ss } from "#protocols/shadowsocks/index.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { readAll } from "../support/client.ts";
import { openTestOutbound } from "../support/inbound-env.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { directDialer } from "../support/direct-accept.ts";
import { startCore } from "../support/start-core.ts";

const HOUR_MS = 3_600_000;
const UNIX_EPOCH_SECONDS = 2_208_988_800;
const PASSWORD = Buffer.alloc(16, 7).toString("base64");
const CIPHER = "2022-blake3-aes-128-gcm";

/** Answers with a time that is ahead; first with what was not asked for, which must not be believed. */
async function openTimeServer(aheadMs: number) {
  const socket = createSocket("udp4");
  let asked = 0;
  socket.on("message", (question, { port, address }) => {
    asked++;
    const answer = Buffer.alloc(48);
    answer[0] = (4 << 3) | 4;
    answer[1] = 1;
    const nowMs = Date.now() + aheadMs;
    for (const at of [32, 40]) answer.writeUInt32BE(Math.floor(nowMs / 1000) + UNIX_EPOCH_SECONDS, at);
    socket.send(Buffer.from(answer), port, address); // another question's
    question.copy(answer, 24, 40, 48);
    socket.send(answer, port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    port: socket.address().port,
    asked: () => asked,
    [Symbol.dispose]: () => void socket.close(),
  };
}

test("ntp.server: peers whose clock is that of the time server are understood, over a reload, too", async () => {
  using time = await openTimeServer(2 * HOUR_MS);
  await using origin = await openTcpOrigin(echo);
  const config = `
ntp: {enable: true, server: 127.0.0.1, port: ${time.port}}
listeners: [{name: in, type: shadowsocks, listen: 127.0.0.1, port: 0, cipher: ${CIPHER}, password: "${PASSWORD}"}]
rules: ["MATCH,DIRECT"]
`;
  await using core = await startCore(config);
  await core.shows(/ntp: the system's clock is 7(200|199)\.\d+ s behind/);
  const port = await core.port("in");
  const ask = async (nowMs: () => number): Promise<string> => {
    const raw = { name: "out", server: LOOPBACK_V4, port, cipher: CIPHER, password: PASSWORD };
    await using outbound = await openTestOutbound(ss, raw, directDialer, nowMs);
    const stream = await outbound.connect(origin.destination, {
      signal: AbortSignal.timeout(5_000),
      metadata: null,
    });
    stream.on("error", () => {}); // refused is refused
    stream.end("hello");
    return (await readAll(stream).catch(() => Buffer.alloc(0))).toString();
  };
  assert.equal(await ask(() => Date.now() + 2 * HOUR_MS), "hello");
  await core.reload(config.replace("MATCH,DIRECT", "DOMAIN,a.example,REJECT"));
  assert.equal(await ask(() => Date.now() + 2 * HOUR_MS), "hello");
  assert.equal(time.asked(), 1); // what the configuration before has learnt is not asked for again
});

test("ntp.dialer-proxy: a way that fails is named, and the rest runs", async () => {
  await using core = await startCore(
    'ntp: {enable: true, server: 127.0.0.1, dialer-proxy: REJECT}\nmixed-port: 0\nrules: ["MATCH,DIRECT"]\n',
  );
  await core.shows(/ntp: 127\.0\.0\.1: /);
});
