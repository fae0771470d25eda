/** Floods of first packets: what the kernel drops of them for a QUIC server, and what it leaves. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { SocketProgram } from "#core/sockets.ts";
import { dropInitials, InitialSieve } from "#transport/quic/server/initial-sieve.ts";
import { hasToken } from "#transport/quic/wire/header.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP socket filters: only on Linux";

/** FIRST(1) VERSION(4) DCID(1+8) SCID(1+n) TOKEN(1+n), and more. */
function long(first: number, { sourceBytes = 8, token = 0, id = 8 } = {}): Buffer {
  const head = Buffer.of(first, 0, 0, 0, 1, id, ...Buffer.alloc(id, 7), sourceBytes);
  return Buffer.concat([head, Buffer.alloc(sourceBytes, 9), Buffer.of(token), Buffer.alloc(1200)]);
}

const LEFT = {
  short: Buffer.concat([Buffer.of(0x40), Buffer.alloc(30)]),
  handshake: long(0xe0),
  "0-RTT": long(0xd0),
  "with a token": long(0xc0, { token: 30 }),
  "with a token, and no id of its own": long(0xc3, { token: 30, sourceBytes: 0 }),
  "ids that are too long": long(0xc0, { id: 21 }),
};

test("the kernel drops first packets without a token, and nothing else", { skip: SKIP }, async () => {
  const at = { ip: LOOPBACK_V4, port: 0 };
  const { socket, close } = await openDatagrams(
    { at, reusePort: false, configure() {} },
    new DatagramSockets(),
  );
  const from = createSocket("udp4");
  try {
    const came: Buffer[] = [];
    socket.receive((payload) => void came.push(Buffer.from(payload)));
    const send = (payload: Buffer): void => from.send(payload, socket.local.port, LOOPBACK_V4);
    assert.equal(socket.sieve?.(dropInitials(1e-9)), true);
    for (const sourceBytes of [0, 8, 20]) send(long(0xc0, { sourceBytes }));
    for (const payload of Object.values(LEFT)) send(payload);
    const names = (): string[] =>
      came.map((one) => Object.entries(LEFT).find(([, payload]) => payload.equals(one))?.[0] ?? "another");
    await until("the last one", () => came.length >= Object.keys(LEFT).length);
    assert.deepEqual(names(), Object.keys(LEFT));

    came.length = 0;
    assert.equal(socket.sieve?.(dropInitials(0.25)), true);
    for (let count = 0; count < 400; count++) send(long(0xc0));
    send(LEFT.short);
    await until("the last one", () => names().includes("short"));
    assert.ok(came.length > 40 && came.length < 200, `${came.length} of 400 at a share of a quarter`);

    came.length = 0;
    assert.equal(socket.sieve?.(null), true);
    send(long(0xc0));
    await until("a first packet", () => came.length === 1);
  } finally {
    from.close();
    close();
  }
});

test("which first packets have a token is told from their first bytes", () => {
  for (const [name, payload] of Object.entries(LEFT)) {
    if (name !== "ids that are too long")
      assert.equal(hasToken(payload), name.startsWith("with a token"), name);
    for (let size = 0; size < 30; size++) hasToken(payload.subarray(0, size));
  }
  for (const sourceBytes of [0, 8, 20]) assert.equal(hasToken(long(0xc0, { sourceBytes })), false);
});

test("a sieve is set at a high rate, follows it, and goes when the flood is over", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const programs: (SocketProgram | null)[] = [];
  const sieve = new InitialSieve((program) => (programs.push(program), true));
  const come = (count: number, ms: number): void => {
    for (let at = 0; at < count; at++) sieve.count((nowMs += ms / count));
  };
  come(1000, 1000);
  assert.deepEqual([sieve.isOn, programs.length], [false, 0], "1,000 a second are answered");
  come(600, 6);
  assert.equal(sieve.isOn, true);
  come(4, 200); // in its program's eyes a fiftieth of the rate
  t.mock.timers.tick(200);
  assert.equal(sieve.isOn, true, "it leaves twice as many now");
  come(400, 5);
  const back = programs.length;
  for (let look = 0; look < 12 && sieve.isOn; look++) {
    nowMs += 200;
    t.mock.timers.tick(200);
  }
  assert.deepEqual([sieve.isOn, programs.at(-1)], [false, null]);
  assert.ok(programs.length - back > 3, "not at once");

  const cannot = new InitialSieve(() => false);
  for (let at = 0; at < 1000; at++) cannot.count((nowMs += 0.01));
  assert.equal(cannot.isOn, false);
  sieve.close();
});
