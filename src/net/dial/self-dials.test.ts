import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Resolver } from "#core/resolver.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { OwnListeners } from "#net/listen/own-listeners.ts";
import { skipLarge } from "../../../test/support/runs.ts";
import { until } from "../../../test/support/until.ts";
import { openDirectDialer } from "./direct-dialer.ts";
import { SelfDials } from "./self-dials.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test(
  "self dials: the name of a node that dials through another goes with the last node of that name",
  { skip: skipLarge },
  async () => {
    const dials = new SelfDials(new OwnListeners());
    const kept = { name: "kept" };
    dials.chains(kept);
    for (let at = 0; at < 1000; at++) for (const name of [`node ${at}`, "kept"]) dials.chains({ name });
    assert.equal(dials.chained, 1001);
    await until("the others have gone", () => {
      collect();
      return dials.chained === 1;
    });
    assert.equal(kept.name, "kept");
  },
);

/** A dialer that knows of one listener, and what is said of connections to it. */
async function openDialler() {
  const server = createServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const listeners = new OwnListeners();
  listeners.add("tcp", { ip: LOOPBACK_V4, port }, false);
  const said: boolean[] = [];
  const selfDials: SelfDials = new SelfDials(listeners, {
    onBusy: () => void said.push(selfDials.busy),
  });
  const resolver: Resolver = { resolve: () => assert.fail("an address was resolved") } as unknown as Resolver;
  const dialer = openDirectDialer({ resolver, selfDials });
  const { signal } = new AbortController();
  const connect = () =>
    dialer.connect({ host: null, ip: LOOPBACK_V4, port }, { signal, metadata: null, reach: null });
  return { connect, selfDials, said, server };
}

test("self dials: one to a listener of ours is known before it leaves, and until it has ended", async () => {
  const { connect, selfDials, said, server } = await openDialler();
  assert.equal(selfDials.busy, false);
  const dialling = connect();
  // The kernel connects a socket of this machine in its connect(2), and a worker may accept it at that moment.
  assert.deepEqual(said, [true]);
  const stream = await dialling;
  assert.deepEqual([selfDials.busy, said], [true, [true]]);
  stream.destroy();
  await until("its end", () => !selfDials.busy);
  assert.deepEqual(said, [true, false]);
  server.close();
});

test("self dials: one that has failed holds nothing back", async () => {
  const { connect, selfDials, said, server } = await openDialler();
  server.close();
  await once(server, "close");
  await assert.rejects(connect());
  await until("its end", () => !selfDials.busy);
  assert.deepEqual(said, [true, false]);
});
