import assert from "node:assert/strict";
import { test } from "node:test";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { cidrOf } from "#net/address/cidr.ts";
import { ipOf, toDestination } from "#net/address/ip.ts";
import type { InnerNetwork } from "./inner-network.ts";
import { agree, generatePair } from "./primitives.ts";
import { Tunnel } from "./tunnel.ts";

const SERVER = toDestination("192.0.2.1", 51_820);

/** A network without a kernel: what is written to its device is counted. */
function openNetwork() {
  const memory = new ArrayBuffer(65_545);
  const buffer = {
    bytes: new Uint8Array(memory),
    view: new DataView(memory),
    pointer: 0n,
    packetPointer: 0n,
  };
  let leave = (_length: number): void => {};
  const device = {
    hasHeader: true,
    cutsDatagrams: false,
    incoming: buffer,
    outgoing: buffer,
    write() {},
    receive(on: (length: number) => void) {
      leave = on;
    },
  };
  const network = { device, sockets: {}, [Symbol.dispose]() {} } as unknown as InnerNetwork;
  return { network, leave: (length: number) => leave(length), bytes: buffer.bytes };
}

function openFlow() {
  const sent: Buffer[] = [];
  let on = (_item: Datagram): void => {};
  const flow: DatagramFlow = {
    localPorts: [1],
    closed: new Promise(() => {}),
    send: ({ payload }) => void sent.push(Buffer.from(payload)),
    receive: (receiver) => void (on = receiver),
    async [Symbol.asyncDispose]() {},
  };
  return { flow, sent, arrive: (payload: Buffer, from = SERVER) => on({ payload, destination: from }) };
}

function openTunnel() {
  const [own, other] = [generatePair(), generatePair()];
  const shared = agree(own, other.publicKey);
  assert.ok(shared !== null);
  const { network, leave, bytes } = openNetwork();
  const { flow, sent, arrive } = openFlow();
  let opened = 0;
  const tunnel = new Tunnel(
    network,
    {
      own,
      mtuBytes: 1408,
      nowMs: Date.now,
      peers: [
        {
          partner: { publicKey: other.publicKey, presharedKey: Buffer.alloc(32), shared },
          label: "the server",
          allowed: [cidrOf("10.0.0.0/8")],
          reserved: Uint8Array.of(1, 2, 3),
          persistentMs: 0,
        },
      ],
    },
    async () => (opened++, { flow, to: SERVER }),
  );
  return { tunnel, sent, arrive, leave, bytes, opened: () => opened };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("datagrams of any length and content, from anywhere, end nothing", async (t) => {
  const { tunnel, arrive, sent } = openTunnel();
  t.after(() => tunnel[Symbol.asyncDispose]());
  const dial = assert.rejects(tunnel.ready(ipOf("10.1.1.1"), t.signal), { reason: "aborted" });
  await settled();
  assert.deepEqual([sent[0]?.length, sent[0]?.toString("hex", 0, 4)], [148, "01010203"]);
  for (const length of [0, 1, 2, 3, 4, 31, 32, 64, 92, 148, 1500])
    for (const type of [0, 1, 2, 3, 4, 255]) {
      const message = Buffer.alloc(length, 7);
      if (length > 0) message[0] = type;
      arrive(message);
      arrive(message, toDestination("198.51.100.1", 9));
    }
  await tunnel[Symbol.asyncDispose]();
  await dial;
});

test("an address that no server carries is said to be that, at once", async (t) => {
  const { tunnel, opened } = openTunnel();
  t.after(() => tunnel[Symbol.asyncDispose]());
  await assert.rejects(tunnel.ready(ipOf("192.0.2.9"), t.signal), {
    reason: "unreachable",
    message: "192.0.2.9 is in no network of allowed-ips",
  });
  assert.equal(opened(), 0);
});

test("a dial behind the end is refused, and opens nothing", async (t) => {
  const { tunnel, opened } = openTunnel();
  await tunnel[Symbol.asyncDispose]();
  await assert.rejects(tunnel.ready(ipOf("10.1.1.1"), t.signal), { reason: "aborted" });
  assert.equal(opened(), 0);
});

test("a way that is given up while it is being opened is not used", async (t) => {
  const { tunnel, sent, opened } = openTunnel();
  t.after(() => tunnel[Symbol.asyncDispose]());
  const dial = assert.rejects(tunnel.ready(ipOf("10.1.1.1"), t.signal), { reason: "aborted" });
  const other = openFlow();
  tunnel.follow(async () => ({ flow: other.flow, to: SERVER }));
  await settled();
  assert.deepEqual([opened(), sent.length], [1, 0]);
  await tunnel[Symbol.asyncDispose]();
  await dial;
});
