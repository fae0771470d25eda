/** Hostile and cut bytes: a decoder answers or throws `ProtocolError`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { openLibc, SystemError } from "#platform/linux/libc.ts";
import { decodeAddress, RTM_NEWADDR } from "./addresses.ts";
import { decodeLink, RTM_NEWLINK } from "./links.ts";
import {
  attribute,
  attribute32,
  attributeNested,
  attributeText,
  decodeMessages,
  encodeMessage,
  readAttributes,
  textOf,
  uint32Of,
  type NetlinkMessage,
} from "./message.ts";
import { isRouteChange, isTableChange } from "./changes.ts";
import { decodeNeighbour, RTM_DELNEIGH, RTM_NEWNEIGH } from "./neighbours.ts";
import { decodeRoute, MAIN_TABLE, RTM_NEWROUTE } from "./routes.ts";
import { decodeRule, encodeRule, RTM_NEWRULE } from "./rules.ts";
import { check, NETLINK_ROUTE, NetlinkSocket } from "./socket.ts";
import { ffiFor } from "#platform/ffi.ts";

const message = (type: number, payload: Uint8Array): NetlinkMessage => ({
  type,
  flags: 0,
  sequence: 1,
  payload,
});
const structure = (length: number, bytes: Readonly<Record<number, number>>): Uint8Array => {
  const made = new Uint8Array(length);
  for (const [at, value] of Object.entries(bytes)) made[Number(at)] = value;
  return made;
};
const native16 = (value: number) => new Uint8Array(Uint16Array.of(value).buffer);

const link = Buffer.concat([
  structure(2, {}),
  native16(1),
  new Uint8Array(Uint32Array.of(7, 1, 0).buffer),
  attributeText(3, "lan0"),
  attribute32(4, 1400),
  attribute32(10, 9),
]);
const address = Buffer.concat([
  structure(4, { 0: 2, 1: 24, 3: 253 }),
  new Uint8Array(Uint32Array.of(7).buffer),
  attribute(2, Uint8Array.of(10, 0, 0, 9)),
]);
const route = Buffer.concat([
  structure(12, { 0: 2, 1: 8, 4: MAIN_TABLE, 7: 1 }),
  attribute(1, Uint8Array.of(10, 0, 0, 0)),
  attribute32(4, 7),
  attribute32(6, 100),
  attribute32(15, 2022),
]);
const rule = encodeRule({
  family: 6,
  priority: 9001,
  mark: 0x2023,
  inDevice: "lan0",
  uid: { from: 1, to: 2 },
  destinationPort: 53,
  not: true,
  from: { bytes: new Uint8Array(16), bits: 1 },
  table: 2022,
  suppress: 0,
});

const neighbour = Buffer.concat([
  structure(4, { 0: 2 }),
  new Uint8Array(Uint32Array.of(7).buffer),
  native16(0x04),
  structure(2, {}),
  attribute(1, Uint8Array.of(10, 0, 0, 9)),
  attribute(2, Uint8Array.of(2, 0, 94, 0, 83, 1)),
]);

const DECODERS: Readonly<
  Record<string, readonly [good: Uint8Array, decode: (bytes: Uint8Array) => unknown]>
> = {
  link: [link, (bytes) => decodeLink(message(RTM_NEWLINK, bytes))],
  address: [address, (bytes) => decodeAddress(message(RTM_NEWADDR, bytes))],
  route: [route, (bytes) => decodeRoute(message(RTM_NEWROUTE, bytes))],
  rule: [rule, (bytes) => decodeRule(message(RTM_NEWRULE, bytes))],
  neighbour: [neighbour, (bytes) => decodeNeighbour(message(RTM_NEWNEIGH, bytes))],
  change: [route, (bytes) => isRouteChange(message(RTM_NEWROUTE, bytes), new Set())],
  messages: [
    Buffer.concat([encodeMessage(message(16, link)), encodeMessage(message(24, route))]),
    (bytes) => decodeMessages(bytes),
  ],
  attributes: [attributeNested(26, [attributeNested(10, [attribute32(8, 1)])]), readAttributes],
  acknowledgement: [
    new Uint8Array(20),
    (bytes) => {
      try {
        check("test", { ...message(2, bytes), flags: 0x200 });
      } catch (error) {
        if (!(error instanceof SystemError)) throw error;
      }
    },
  ],
};

test("what was encoded is decoded", () => {
  assert.deepEqual(decodeLink(message(RTM_NEWLINK, link)), {
    index: 7,
    name: "lan0",
    up: true,
    mtuBytes: 1400,
    ethernet: true,
    master: 9,
  });
  assert.deepEqual(decodeAddress(message(RTM_NEWADDR, address)), {
    link: 7,
    address: Uint8Array.of(10, 0, 0, 9),
    bits: 24,
    scope: 253,
  });
  assert.deepEqual(decodeRoute(message(RTM_NEWROUTE, route)), {
    family: 4,
    destination: { bytes: Uint8Array.of(10, 0, 0, 0), bits: 8 },
    table: 2022,
    link: 7,
    metric: 100,
    unicast: true,
  });
  assert.deepEqual(decodeRule(message(RTM_NEWRULE, rule)), {
    family: 6,
    priority: 9001,
    action: 1,
    table: 2022,
    mark: 0x2023,
    inDevice: "lan0",
    toBits: 0,
    protocol: 119,
  });
});

test("a neighbour: known, stale, without a hardware address, gone", () => {
  const about = { address: Uint8Array.of(10, 0, 0, 9), link: 7 };
  const inState = (state: number, type = RTM_NEWNEIGH) => {
    const bytes = Uint8Array.from(neighbour);
    bytes.set(native16(state), 8);
    return decodeNeighbour(message(type, bytes));
  };
  for (const state of [0x02, 0x04, 0x08, 0x10, 0x80])
    assert.deepEqual(inState(state), { ...about, mac: "02:00:5e:00:53:01" });
  for (const state of [0, 0x01, 0x20, 0x40]) assert.deepEqual(inState(state), { ...about, mac: null });
  assert.deepEqual(inState(0x02, RTM_DELNEIGH), { ...about, mac: null });
  assert.equal(inState(0x02, RTM_NEWLINK), null);
});

test("several messages and nested attributes are found", () => {
  const both = Buffer.concat([encodeMessage(message(16, link)), encodeMessage(message(24, route))]);
  assert.deepEqual(
    decodeMessages(both).map(({ type, payload }) => [type, payload.length]),
    [
      [16, link.length],
      [24, route.length],
    ],
  );
  const outer = readAttributes(attributeNested(0x8000 | 26, [attributeText(3, "x"), attribute32(8, 5)]));
  const inner = readAttributes(outer.get(26) ?? new Uint8Array());
  assert.equal(textOf(inner.get(3)), "x");
  assert.equal(uint32Of(inner.get(8)), 5);
});

for (const [what, [good, decode]] of Object.entries(DECODERS)) {
  const bears = (bytes: Uint8Array): void => {
    try {
      decode(bytes);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `${what}: ${String(error)}`);
    }
  };
  test(`${what}: every truncation`, () => {
    decode(good);
    for (let length = 0; length < good.length; length++) bears(good.subarray(0, length));
  });
  test(`${what}: random bytes, and good ones with one changed`, () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), bears));
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), (at, value) => {
        const changed = Uint8Array.from(good);
        changed[at] = value;
        bears(changed);
      }),
    );
  });
}

test("routes of foreign tables are no change for us, default routes and own tables are", () => {
  const isChange = (tables: readonly number[], bytes: Uint8Array) =>
    isRouteChange(message(RTM_NEWROUTE, bytes), new Set(tables));
  assert.equal(isChange([], route), false);
  assert.equal(isChange([2022], route), true);
  assert.equal(isChange([], structure(12, { 0: 2, 4: MAIN_TABLE, 7: 1 })), true);
  assert.equal(isRouteChange(message(RTM_NEWLINK, link), new Set()), true);
});

test("rules of nftables are changes, elements of its sets are not", () => {
  const NFTABLES = 10 << 8;
  assert.equal(isTableChange(message(NFTABLES | 6, new Uint8Array())), true);
  assert.equal(isTableChange(message(NFTABLES | 12, new Uint8Array())), false);
  assert.equal(isTableChange(message((1 << 8) | 6, new Uint8Array())), false);
});

test("a refusal carries the errno and the kernel's reason", () => {
  const payload = Buffer.concat([
    new Uint8Array(Int32Array.of(-17).buffer),
    encodeMessage(message(32, new Uint8Array())),
    attributeText(1, "Rule already exists"),
  ]);
  assert.throws(() => check("add", { ...message(2, payload), flags: 0x200 }), {
    code: "EEXIST",
    message: "add (Rule already exists): EEXIST",
  });
});

const libc = openLibc();

test(
  "a socket that was closed in the middle of a dump asks nothing of the descriptor that has its number now",
  {
    skip: libc === null || process.platform !== "linux" ? "SKIP netlink sockets: need Linux and FFI" : false,
  },
  () => {
    assert.ok(libc !== null);
    const ffi = ffiFor("this test");
    const open = (): NetlinkSocket => new NetlinkSocket(ffi, libc, NETLINK_ROUTE);
    const RTM_GETLINK = 18;
    const closing = open();
    const others: NetlinkSocket[] = [];
    const dump = (): void =>
      closing.dump("links", RTM_GETLINK, new Uint8Array(16), () => {
        closing[Symbol.dispose]();
        if (others.length === 0) others.push(open());
      });
    assert.throws(dump, { code: "EBADF" });
    const [other] = others as [NetlinkSocket];
    assert.equal(other.fd, closing.fd); // the number is another's by now
    assert.equal(closing.poll(), null);
    assert.throws(() => closing.request("links", RTM_GETLINK, 0, new Uint8Array(16)), { code: "EBADF" });
    other[Symbol.dispose]();
  },
);
