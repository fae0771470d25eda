import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { demandedOptions, Egress, EgressSockets } from "./egress.ts";

const FAR = "192.0.2.1" as Ip;
const demand = (routingMark: number, interfaceName: string | null, dns: readonly string[] = []) => ({
  routingMark,
  interfaceName: () => interfaceName,
  dnsAddresses: dns as readonly Ip[],
});

test("demands hold until they are taken back, the first one first", () => {
  const egress = new Egress();
  const none = [egress.routingMark, egress.interfaceName, [...egress.dnsAddresses]];
  assert.deepEqual(none, [0, "", []]);
  {
    using _first = egress.demand(demand(0x2024, "", ["198.18.0.2"]));
    using _second = egress.demand(demand(7, "eth0", ["10.0.0.2"]));
    assert.deepEqual([egress.routingMark, egress.interfaceName], [0x2024, "eth0"]);
    assert.deepEqual([...egress.dnsAddresses], ["198.18.0.2", "10.0.0.2"]);
    assert.deepEqual(demandedOptions(egress), { routingMark: 0x2024, interfaceName: "eth0" });
  }
  assert.deepEqual([egress.routingMark, egress.interfaceName, [...egress.dnsAddresses]], none);
});

test("where a device is demanded and there is none, nothing leaves; but what stays on the machine does", () => {
  const egress = new Egress();
  const sockets = new EgressSockets({ routingMark: 0, interfaceName: "" }, egress);
  assert.equal(sockets.for(FAR), null);
  using _demand = egress.demand(demand(0, null));
  assert.throws(() => sockets.for(FAR), { name: "DialError", reason: "unreachable" });
  assert.throws(() => sockets.for(null), { name: "DialError" });
  for (const own of ["127.0.0.1", "127.8.8.8", "::1"]) assert.equal(sockets.for(own as Ip), null);
  assert.equal(demandedOptions(egress), null);
  assert.equal(sockets.template, null);
});

test("what sockets have holds for the loopback, too, while nothing is demanded; a change of the device is told", () => {
  let changes = 0;
  const egress = new Egress(() => changes++);
  const sockets = new EgressSockets({ routingMark: 0, interfaceName: "" }, egress);
  assert.deepEqual(sockets.template, { routingMark: 0, interfaceName: "", loopback: true });
  let device = "eth0";
  using _demand = egress.demand({ ...demand(7, ""), interfaceName: () => device });
  assert.deepEqual(sockets.template, { routingMark: 7, interfaceName: "eth0", loopback: false });
  device = "eth1";
  egress.interfaceChanged();
  assert.deepEqual(sockets.template, { routingMark: 7, interfaceName: "eth1", loopback: false });
  assert.equal(changes, 2);
});

test("a demand makes sockets of its own, which go with it", { skip: process.platform !== "linux" }, () => {
  const egress = new Egress();
  const sockets = new EgressSockets({ routingMark: 0, interfaceName: "" }, egress);
  const held = egress.demand(demand(0, "lo"));
  const made = sockets.for(FAR);
  assert.notEqual(made, null);
  assert.equal(sockets.for(FAR), made);
  held[Symbol.dispose]();
  assert.equal(sockets.for(FAR), null);
});
