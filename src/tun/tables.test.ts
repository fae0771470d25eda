import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FlowTable } from "./flow-table.ts";
import { encodeNatState } from "./nat-state.ts";
import { FIRST_NAT_PORT, NatTable } from "./nat-table.ts";
import { itemAt as at } from "#lib/at.ts";

const PORTS = 65_536 - FIRST_NAT_PORT;

test("a table of flows does what a map does", () => {
  const step = fc.record({ key: fc.integer({ min: 0, max: 40 }), add: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const table = new FlowTable(16, 2);
      const model = new Map<number, number>();
      for (const { key, add } of steps) {
        table.key.set([key, -key]);
        const slot = table.find();
        assert.equal(slot, model.get(key) ?? -1);
        if (add && slot < 0) {
          const made = table.insert();
          assert.equal(made < 0, model.size === 16);
          if (made >= 0) model.set(key, made);
        } else if (!add && slot >= 0) {
          table.delete(slot);
          table.delete(slot); // a second time does nothing
          model.delete(key);
        }
        assert.equal(table.size, model.size);
      }
      assert.equal(new Set(model.values()).size, model.size);
    }),
  );
});

function flow(nat: NatTable, number: number): void {
  nat.flows.key.set([number, 1, 1]);
}

test("no NAT port is given away while a socket holds it (transparent-proxy §12 line 7)", () => {
  const nat = new NatTable(4);
  flow(nat, 0);
  const held = nat.add(0);
  nat.hold(held - FIRST_NAT_PORT);
  nat.hold(held - FIRST_NAT_PORT); // a second connection of the same addresses, before the first is known to be closed
  const seen = new Set<number>();
  for (let number = 1; number <= 2 * PORTS; number++) {
    flow(nat, number);
    assert.equal(nat.find(number), 0);
    seen.add(nat.add(number));
  }
  assert.equal(seen.has(held), false);
  assert.equal(seen.has(0), false);
  assert.equal(nat.size, PORTS);
  nat.release(held - FIRST_NAT_PORT, 1e6);
  nat.sweep(2e6);
  assert.equal(nat.size, 1);
  nat.release(held - FIRST_NAT_PORT, 3e6);
  nat.sweep(3e6 + 59_999);
  assert.equal(nat.size, 1);
  nat.sweep(3e6 + 60_000);
  assert.equal(nat.size, 0);
});

test("with every port held a new flow is refused, and served again after one release", () => {
  const nat = new NatTable(6);
  const words = nat.flows.key.length;
  const put = (number: number): number => {
    nat.flows.key.set([number, ...Array.from({ length: words - 1 }, () => 7)]);
    return nat.add(0);
  };
  for (let number = 0; number < PORTS; number++) nat.hold(put(number) - FIRST_NAT_PORT);
  assert.equal(put(PORTS), 0);
  nat.release(1234, 5);
  assert.equal(put(PORTS), 1234 + FIRST_NAT_PORT);
  assert.equal(put(PORTS + 1), 1234 + FIRST_NAT_PORT); // it has no socket yet
});

test("packets keep a flow without a socket, silence ends it", () => {
  const nat = new NatTable(4);
  flow(nat, 1);
  const port = nat.add(0);
  nat.sweep(59_000);
  assert.equal(nat.find(59_000), port);
  nat.sweep(100_000);
  assert.equal(nat.slotOf(port, 100_000), port - FIRST_NAT_PORT);
  assert.equal(nat.slotOf(port + 1, 100_000), -1);
  assert.equal(nat.slotOf(80, 100_000), -1);
  nat.sweep(160_000);
  assert.equal(nat.size, 0);
  assert.equal(nat.endpointsOf(port), null);
});

test("a NAT port leads to its flow", () => {
  const nat = new NatTable(4);
  nat.flows.key.set([0x0a000001, 0xc6336402 | 0, (40_000 << 16) | 443]);
  const port = nat.add(0);
  assert.deepEqual(nat.endpointsOf(port), {
    slot: port - FIRST_NAT_PORT,
    source: { ip: "10.0.0.1", port: 40_000 },
    destination: { ip: "198.51.100.2", port: 443 },
  });
});

const NOTHING: (nowMs: number) => void = () => {};

test("another table goes on with all flows, and holds what sockets of the first have", () => {
  const before = new NatTable(4);
  const ports: number[] = [];
  for (let number = 0; number < 100; number++) {
    flow(before, number);
    ports.push(before.add(0));
  }
  before.hold(at(ports, 7) - FIRST_NAT_PORT);
  flow(before, 7_000);
  const next = before.flows.free[0];
  const after = new NatTable(4);
  const release = after.restore(encodeNatState(before.state), 0) ?? NOTHING;
  for (let number = 0; number < 100; number++) {
    flow(after, number);
    assert.equal(after.find(0), ports[number]);
  }
  flow(after, 7_000);
  assert.equal(after.add(0) - FIRST_NAT_PORT, next, "ports are given out in the same order");
  after.sweep(1e9);
  assert.equal(after.size, 1, "the one that a socket has");
  release(1e9);
  after.sweep(2e9);
  assert.equal(after.size, 0);
});

test("what is no state of a table is none, however it is cut", () => {
  const before = new NatTable(6);
  before.flows.key.set([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  before.add(0);
  const good = encodeNatState(before.state);
  assert.notEqual(new NatTable(6).restore(good, 0), null);
  assert.equal(new NatTable(4).restore(good, 0), null, "of the other family");
  for (const length of [0, 1, 4, 11, 12, 16, good.length - 4, good.length - 1])
    assert.equal(new NatTable(6).restore(good.subarray(0, length), 0), null, `${length} bytes`);
  for (const word of [0, 1, 2, 3, 14, 15]) {
    const other = Uint8Array.from(good);
    new DataView(other.buffer).setInt32(word * 4, -7, true);
    assert.equal(new NatTable(6).restore(other, 0), null, `word ${word}`);
  }
  const twice = Uint8Array.from(good);
  twice.copyWithin(good.length - 4, good.length - 8);
  assert.equal(new NatTable(6).restore(twice, 0), null, "a slot twice");
});
