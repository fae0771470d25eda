import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ReceivedInitiation } from "./handshake.ts";
import { answeredBy, DATA, INITIATION, RESPONSE, senderOf, typeOf } from "./messages.ts";
import { messageBytes, Peer } from "./peer.ts";
import { agree, generatePair, type KeyPair } from "./primitives.ts";
import { Timestamps } from "./timestamp.ts";

const SECOND_MS = 1000;
const MTU = 1408;

/** Two ends without sockets: a message reaches the other end at once, unless `loses` says that it is lost. */
class World {
  nowMs = 1_000_000;
  loses: (from: "client" | "server", type: number) => boolean = () => false;
  /** `client 1`: who has sent which type, since the last `said`. */
  #said: string[] = [];
  readonly client: End;
  readonly server: End;

  readonly #timers: TestContext["mock"]["timers"];

  constructor(t: TestContext, persistentMs: number) {
    this.#timers = t.mock.timers;
    this.#timers.enable({ apis: ["setTimeout"] });
    const [client, server] = [generatePair(), generatePair()];
    this.client = new End(this, "client", client, server, persistentMs);
    this.server = new End(this, "server", server, client, 0);
  }

  said(): string {
    return this.#said.splice(0).join(", ");
  }

  carry(from: "client" | "server", message: Buffer): void {
    const type = typeOf(message);
    this.#said.push(`${from} ${type}${type === DATA && message.length === 32 ? " empty" : ""}`);
    if (!this.loses(from, type)) this[from === "client" ? "server" : "client"].take(Buffer.from(message));
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 100) {
      this.nowMs += Math.min(100, left);
      this.#timers.tick(Math.min(100, left));
    }
  }

  [Symbol.dispose](): void {
    for (const end of [this.client, this.server]) end.peer[Symbol.dispose]();
  }
}

class End {
  readonly peer: Peer;
  readonly got: string[] = [];
  readonly last: Buffer[] = [];
  readonly #own: KeyPair;
  readonly #indexes = new Set<number>();

  constructor(world: World, name: "client" | "server", own: KeyPair, other: KeyPair, persistentMs: number) {
    this.#own = own;
    const timestamps = new Timestamps(() => world.nowMs);
    let next = name === "client" ? 1 : 1000;
    const shared = agree(own, other.publicKey);
    assert.ok(shared !== null);
    const partner = { publicKey: other.publicKey, presharedKey: Buffer.alloc(32), shared };
    this.peer = new Peer(partner, name, persistentMs, Buffer.alloc(messageBytes(MTU)), {
      own,
      nowMs: () => world.nowMs,
      timestamp: () => timestamps.next(),
      send: (_, message) => world.carry(name, message),
      takeIndex: () => (this.#indexes.add(next), next++),
      giveUpIndex: (index) => void this.#indexes.delete(index),
      onSilent: () => {},
    });
  }

  get indexes(): number {
    return this.#indexes.size;
  }

  say(text: string): void {
    const packet = Buffer.alloc(Math.ceil(text.length / 16) * 16);
    packet.write(text);
    this.peer.send(packet);
  }

  take(message: Buffer): void {
    this.last.push(message);
    const type = typeOf(message);
    if (type === RESPONSE) this.peer.takeResponse(answeredBy(message), message);
    else if (type === INITIATION) {
      const received = ReceivedInitiation.read(this.#own, message);
      if (received !== null) this.peer.takeInitiation(received);
    } else if (type === DATA) {
      const out = Buffer.alloc(2048);
      const length = this.peer.receive(senderOf(message), message, out, 0);
      if (length > 0) this.got.push(out.toString("latin1", 0, out.indexOf(0)));
    }
  }
}

function openWorld(t: TestContext, persistentMs = 0): World {
  const world = new World(t, persistentMs);
  t.after(() => world[Symbol.dispose]());
  return world;
}

test("the first packet waits for the handshake, and goes behind it", (t) => {
  const world = openWorld(t);
  world.client.say("hello");
  assert.deepEqual(world.server.got, ["hello"]);
  assert.equal(world.said(), "client 1, server 2, client 4");
  world.server.say("and hello");
  assert.deepEqual(world.client.got, ["and hello"]);
  assert.equal(world.said(), "server 4");
});

test("a dial that waits goes on with the keys, whose use the other side sees at once", async (t) => {
  const world = openWorld(t);
  await world.client.peer.ready(new AbortController().signal);
  assert.equal(world.said(), "client 1, server 2, client 4 empty");
  assert.ok(world.client.peer.isReady && world.server.peer.isReady);
});

test("who has heard and says nothing says that after ten seconds", (t) => {
  const world = openWorld(t);
  world.client.say("hello");
  world.said();
  world.pass(9 * SECOND_MS);
  assert.equal(world.said(), "");
  world.pass(2 * SECOND_MS);
  assert.equal(world.said(), "server 4 empty");
  world.pass(60 * SECOND_MS);
  assert.equal(world.said(), ""); // nothing answers what is empty
});

test("keys are agreed on anew after two minutes of talk, by the side that has begun", (t) => {
  const world = openWorld(t);
  for (let second = 0; second < 125; second++) {
    world.client.say(`c${second}`);
    world.server.say(`s${second}`);
    world.pass(SECOND_MS);
  }
  assert.equal(
    world
      .said()
      .match(/\w+ [12]/g)
      ?.join(", "),
    "client 1, server 2, client 1, server 2",
  );
  assert.deepEqual([world.client.got.length, world.server.got.length], [125, 125]);
  assert.ok(world.client.indexes <= 2 && world.server.indexes <= 3);
});

test("no key is used for longer than three minutes, and none is kept for nine", (t) => {
  const world = openWorld(t);
  world.client.say("hello");
  world.pass(181 * SECOND_MS);
  world.said();
  assert.ok(!world.client.peer.isReady);
  world.client.say("again");
  assert.equal(world.said(), "client 1, server 2, client 4");
  assert.deepEqual(world.server.got, ["hello", "again"]);
  world.pass(541 * SECOND_MS);
  assert.deepEqual([world.client.indexes, world.server.indexes], [0, 0]);
});

test("what brings no answer is a reason for a handshake: the other side may have begun anew", (t) => {
  const world = openWorld(t);
  world.client.say("hello");
  world.pass(12 * SECOND_MS);
  world.said();
  world.loses = (from, type) => from === "client" && type === DATA;
  world.client.say("lost");
  world.pass(14 * SECOND_MS);
  assert.equal(world.said(), "client 4");
  world.pass(2 * SECOND_MS);
  assert.equal(world.said(), "client 1, server 2, client 4 empty");
});

test("a handshake is tried every five seconds, and given up after a minute and a half", async (t) => {
  const world = openWorld(t);
  world.loses = () => true;
  const dial = assert.rejects(world.client.peer.ready(new AbortController().signal), {
    reason: "timeout",
    message: /client does not answer the handshake/,
  });
  world.pass(4 * SECOND_MS);
  assert.equal(world.said(), "client 1");
  world.pass(7 * SECOND_MS);
  await dial;
  world.pass(100 * SECOND_MS);
  const tries = world.said().split(", ").length;
  assert.ok(tries >= 15 && tries <= 18, `${tries}`);
  world.pass(100 * SECOND_MS);
  assert.equal(world.said(), "");
  assert.equal(world.client.indexes, 0);
  world.loses = () => false;
  world.client.say("hello");
  assert.deepEqual(world.server.got, ["hello"]);
});

test("with a persistent keepalive something is said every so often", (t) => {
  const world = openWorld(t, 25 * SECOND_MS);
  world.client.say("hello");
  world.said();
  world.pass(110 * SECOND_MS);
  assert.equal(world.said().match(/client 4 empty/g)?.length, 4);
});

test("repeated, forged and late messages are dropped", (t) => {
  const world = openWorld(t);
  world.client.say("one");
  const [initiation, data] = [world.server.last[0], world.server.last.at(-1)];
  assert.ok(initiation !== undefined && data !== undefined);
  world.server.take(data);
  const forged = Buffer.from(data);
  forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
  world.server.take(forged);
  assert.deepEqual(world.server.got, ["one"]);
  world.said();
  world.pass(SECOND_MS);
  world.server.take(initiation); // its timestamp was seen
  assert.equal(world.said(), "");
});

test("both sides may begin at the same time", (t) => {
  const world = openWorld(t);
  const held: [from: "client" | "server", message: Buffer][] = [];
  const carry = world.carry.bind(world);
  world.carry = (from, message) => void held.push([from, Buffer.from(message)]);
  world.client.say("from the client");
  world.server.say("from the server");
  world.carry = carry;
  for (const [from, message] of held) world.carry(from, message);
  world.client.say("second");
  world.server.say("second");
  assert.deepEqual(world.server.got.toSorted(), ["from the client", "second"]);
  assert.deepEqual(world.client.got.toSorted(), ["from the server", "second"]);
});
