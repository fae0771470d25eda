/** Sockets that are on the way of others' datagrams; where FFI opens them, in a process of its own. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import type { CapturedDatagram } from "#core/sockets.ts";
import { LOOPBACK_V4, parseIp } from "#net/address/ip.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import { openTransparentUdp } from "#net/udp/transparent-udp.ts";
import { makeTransparent, openOriginalDestinations, openTransparentSockets } from "#platform/transparent.ts";
import { isChild, runAsChild } from "../support/as-child.ts";
import { watchLeaks } from "../support/leaks.ts";

const needsRoot =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? { skip: "SKIP transparent sockets: IP_TRANSPARENT needs Linux and root" }
    : {};

if (!(await isChild({ exchanges }))) {
  test(
    "a transparent socket reads in the event loop, under pressure",
    { ...needsRoot, timeout: 60_000 },
    async () => {
      await runAsChild(import.meta.url, "exchanges", { flags: ["--expose-gc"] });
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

async function exchanges(): Promise<void> {
  const noLeaks = watchLeaks();
  for (const ip of [LOOPBACK_V4, parseIp("::1") as Ip]) await exchange(ip);
  await noLeaks();
}

async function exchange(ip: Ip): Promise<void> {
  const listener = openTransparentUdp({ ip, port: 0 }, { overlap: false });
  const { local } = listener.socket;
  assert.throws(() => openTransparentUdp(local, { overlap: false }), {
    name: "SystemError",
    code: "EADDRINUSE",
  });
  const beside = openTransparentUdp(local, { overlap: true }); // what a reload does
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
