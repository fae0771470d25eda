import assert from "node:assert/strict";
import { test } from "node:test";
import { cidrOf } from "#net/address/cidr.ts";
import { bytesOfIp, ipOf } from "#net/address/ip.ts";
import { addressIn, AllowedIps, packetBytes } from "./allowed-ips.ts";
import { Deadlines } from "./deadlines.ts";
import { outboundSchema } from "./options.ts";
import { generatePair } from "./primitives.ts";
import { readSettings } from "./settings.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const PUBLIC = generatePair().publicKey.toString("base64");
const NODE = {
  server: "192.0.2.1",
  port: 51_820,
  "private-key": KEY,
  "public-key": PUBLIC,
  ip: "172.16.0.2/32",
};

const read = (more: object) => readSettings(outboundSchema.parse({ ...NODE, ...more }));

test("a node with one server carries everything, unless it says what", () => {
  const { peers, addresses, mtuBytes, persistentMs } = read({ ipv6: "fd00::2", "persistent-keepalive": 25 });
  assert.deepEqual(
    addresses.map(({ bits }) => bits),
    [32, 128],
  );
  assert.deepEqual([mtuBytes, persistentMs], [1408, 25_000]);
  assert.deepEqual(
    peers.map(({ server, port, allowed }) => [server, port, allowed]),
    [["192.0.2.1", 51_820, [cidrOf("0.0.0.0/0"), cidrOf("::/0")]]],
  );
  assert.deepEqual(read({ "allowed-ips": ["10.0.0.0/8"] }).peers[0]?.allowed, [cidrOf("10.0.0.0/8")]);
});

test("reserved bytes are numbers or base64", () => {
  assert.deepEqual(read({}).peers[0]?.reserved, Uint8Array.of(0, 0, 0));
  assert.deepEqual(read({ reserved: [209, 98, 59] }).peers[0]?.reserved, Uint8Array.of(209, 98, 59));
  assert.deepEqual(read({ reserved: "U4An" }).peers[0]?.reserved, Uint8Array.of(0x53, 0x80, 0x27));
  assert.deepEqual(read({ reserved: "209,98,59" }).peers[0]?.reserved, Uint8Array.of(209, 98, 59));
  for (const reserved of [[1, 2], [1, 2, 300], "U4AnAA==", "1,2,300"])
    assert.equal(outboundSchema.safeParse({ ...NODE, reserved }).success, false);
});

test("several servers have what each of them carries", () => {
  const peer = { "public-key": PUBLIC, port: 1 };
  const { peers } = read({
    peers: [
      { ...peer, server: "192.0.2.1", "allowed-ips": ["10.0.0.0/8"] },
      { ...peer, server: "192.0.2.2", "allowed-ips": ["0.0.0.0/0"], reserved: [1, 2, 3] },
    ],
  });
  assert.deepEqual(
    peers.map(({ server }) => server),
    ["192.0.2.1", "192.0.2.2"],
  );
  const allowed = new AllowedIps(
    peers.flatMap(({ allowed: networks, server }) => networks.map((cidr) => ({ cidr, owner: server }))),
  );
  const ownerOf = (text: string) => allowed.ownerOf(bytesOfIp(ipOf(text)));
  assert.deepEqual(["10.1.2.3", "1.1.1.1", "fd00::1"].map(ownerOf), ["192.0.2.1", "192.0.2.2", null]);
});

test("what is missing or cannot be is named", () => {
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ ip: "" }, /^ip: this node needs an address of its own/],
    [{ server: undefined }, /^server: is missing/],
    [{ port: undefined }, /^port: is missing/],
    [{ "public-key": undefined }, /^public-key: is missing/],
    [{ "public-key": Buffer.alloc(32).toString("base64") }, /^public-key: is no key that can be used/],
    [{ peers: [{ "public-key": PUBLIC, port: 1 }] }, /^peers\[0\]\.server: is missing/],
    [{ peers: [{ "public-key": PUBLIC, server: "a", port: 1 }] }, /^peers\[0\]\.allowed-ips: is missing/],
  ];
  for (const [more, message] of cases) assert.throws(() => read(more), { name: "ConfigError", message });
  for (const more of [
    { "private-key": "x" },
    { ip: "fd00::1" },
    { ipv6: "10.0.0.1" },
    { "allowed-ips": ["x"] },
  ])
    assert.equal(outboundSchema.safeParse({ ...NODE, ...more }).success, false, JSON.stringify(more));
});

test("what is empty is as good as what is not there", () => {
  const empty = {
    ipv6: "",
    "pre-shared-key": "",
    reserved: "",
    mtu: "",
    "persistent-keepalive": "",
    dns: "",
  };
  assert.deepEqual(read(empty), { ...read({}), own: read(empty).own });
});

test("two nodes have one tunnel where all that it is made of is the same", () => {
  const identity = (more: object) => JSON.stringify(read(more).identity);
  assert.equal(identity({ udp: true, dns: ["1.1.1.1"], workers: 3 }), identity({}));
  for (const other of [{ ip: "172.16.0.3" }, { port: 1 }, { mtu: 1400 }, { reserved: [1, 2, 3] }])
    assert.notEqual(identity(other), identity({}), JSON.stringify(other));
});

test("the disguise of AmneziaWG makes a node inert rather than visible", () => {
  assert.equal(outboundSchema.safeParse({ ...NODE, "amnezia-wg-option": { jc: 4 } }).success, false);
});

test("a packet is as long as it says, and no longer than what came", () => {
  const v4 = Uint8Array.of(0x45, 0, 0, 22, ...Array.from({ length: 28 }, () => 1));
  assert.equal(packetBytes(v4, 0, 32), 22); // ten bytes of padding
  assert.equal(packetBytes(v4, 0, 21), -1);
  assert.equal(packetBytes(v4, 0, 19), -1);
  const v6 = Uint8Array.of(0x60, 0, 0, 0, 0, 2, ...Array.from({ length: 50 }, () => 2));
  assert.equal(packetBytes(v6, 0, 48), 42);
  assert.equal(packetBytes(v6, 0, 41), -1);
  for (const none of [0, -1]) assert.equal(packetBytes(v4, 0, none), -1);
  assert.equal(packetBytes(Uint8Array.of(0x50, ...v4), 0, 32), -1);
  assert.deepEqual(addressIn(v4, 0, "source"), Uint8Array.of(1, 1, 1, 1));
  assert.equal(addressIn(v6, 0, "destination").length, 16);
  assert.equal(addressIn(Uint8Array.of(0), 0, "source").length, 0);
});

test("of several moments each comes once, the one that was set last", async () => {
  const came: string[] = [];
  using deadlines = new Deadlines<"one" | "two" | "three">(() => performance.now(), {
    one: () => void came.push("one"),
    two: () => void came.push("two"),
    three: () => void came.push("three"),
  });
  const nowMs = performance.now();
  deadlines.set("one", nowMs + 60_000);
  deadlines.set("two", nowMs + 30);
  deadlines.set("three", nowMs + 20);
  deadlines.setOnce("three", nowMs + 1);
  deadlines.set("one", nowMs + 10);
  deadlines.clear("two");
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.deepEqual(came, ["one", "three"]);
});
