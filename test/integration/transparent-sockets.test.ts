/** FFI faults are crashes, so the work is done in a child: `node transparent-sockets.test.ts child`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { CapturedDatagram } from "#core/sockets.ts";
import { LOOPBACK_V4, parseIp } from "#net/ip.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import { openTransparentUdp } from "#net/transparent-udp.ts";
import { makeTransparent, openOriginalDestinations, openTransparentSockets } from "#platform/transparent.ts";
import { watchLeaks } from "../support/leaks.ts";

const self = fileURLToPath(import.meta.url);
const needsRoot =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? { skip: "SKIP transparent sockets: IP_TRANSPARENT needs Linux and root" }
    : {};

if (process.argv[2] === "child") await child();
else {
  test(
    "a transparent socket reads in the event loop, under pressure",
    { ...needsRoot, timeout: 60_000 },
    async () => {
      const args = ["--disable-warning=ExperimentalWarning", "--expose-gc", self, "child"];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      assert.equal(stdout, "good\n");
    },
  );

  test("another system says which keys it cannot serve", () => {
    assert.throws(() => openOriginalDestinations("darwin"), {
      name: "ConfigError",
      message: /^redir-port and listeners of type redir: only Linux/,
    });
    for (const open of [() => openTransparentSockets("win32"), () => makeTransparent(0, "win32")])
      assert.throws(open, {
        name: "ConfigError",
        message: /^tproxy-port and listeners of type tproxy: only Linux/,
      });
  });
}

async function child(): Promise<void> {
  const noLeaks = watchLeaks();
  for (const ip of [LOOPBACK_V4, parseIp("::1") as Ip]) await exchange(ip);
  await noLeaks();
  console.log("good"); // and the process ends by itself: no handle of the event loop is left
}

async function exchange(ip: Ip): Promise<void> {
  const listener = openTransparentUdp({ ip, port: 0 }, false);
  const { local } = listener.socket;
  assert.throws(() => openTransparentUdp(local, false), { name: "SystemError", code: "EADDRINUSE" });
  const beside = openTransparentUdp(local, true); // what a reload does
  beside.close();

  const waiting: ((item: CapturedDatagram) => void)[] = [];
  listener.socket.receive((item) => waiting.shift()?.(item));
  const client = createSocket(ip.includes(":") ? "udp6" : "udp4");
  client.bind(0, ip);
  await once(client, "listening");
  const source: Endpoint = { ip, port: client.address().port };
  for (let at = 0; at < 2_000; at++) {
    const { promise, resolve } = Promise.withResolvers<CapturedDatagram>();
    waiting.push(resolve);
    client.send(`datagram ${at}`, local.port, ip);
    const { payload, dscp, ...places } = await promise; // a promise job behind a callback of libuv
    assert.equal(Buffer.from(payload).toString(), `datagram ${at}`);
    assert.equal(dscp, 0);
    assert.deepEqual(places, { source, destination: { host: null, ...local } });
    if (at % 50 === 0) globalThis.gc?.();
  }
  const reply = listener.socket.replyAs(local, 0x2a);
  reply.send(Buffer.from("back"), { ip: "192.0.2.1" as Ip, port: 9 }); // lost, whatever the family
  reply.send(Buffer.from("back"), source);
  const [message, from] = (await once(client, "message")) as [Buffer, { port: number }];
  assert.deepEqual([message.toString(), from.port], ["back", local.port]);
  reply.close();
  client.close();
  await once(client, "close");
  listener.close();
  listener.close();
  await listener.socket.closed;
}
