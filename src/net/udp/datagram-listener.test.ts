import assert from "node:assert/strict";
import { Socket } from "node:dgram";
import { test } from "node:test";
import { ANY_V6, ipOf } from "#net/address/ip.ts";
import { openDatagrams } from "./datagram-listener.ts";
import { DatagramSockets } from "./datagram-socket.ts";

const openAt = (ip: string) =>
  openDatagrams(
    { at: { ip: ipOf(ip), port: 0 }, reusePort: false, configure() {} },
    new DatagramSockets(() => null),
  );

test("on a machine without IPv6 all addresses are those of IPv4", async (context) => {
  const { bind } = Socket.prototype;
  context.mock.method(Socket.prototype, "bind", function (this: Socket, ...asked: [{ address: string }]) {
    if (!asked[0].address.includes(":")) return bind.apply(this, asked);
    const missing = Object.assign(new Error("bind EAFNOSUPPORT"), { code: "EAFNOSUPPORT" });
    process.nextTick(() => this.emit("error", missing));
    return this;
  });
  await assert.rejects(openAt("::1"), /EAFNOSUPPORT/);
  const { socket, close } = await openAt(ANY_V6);
  assert.equal(socket.local.ip, "0.0.0.0");
  close();
});
