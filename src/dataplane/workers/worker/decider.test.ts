/** What is for the reach guard to look at is not decided by a worker, whether its client asks or its listener knows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOfIp, parseIp } from "#net/address/ip.ts";
import type { Ip } from "#core/session.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT as SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { MAIN_LIST } from "#router/tables/decide.ts";
import { decisionData, decisionPorts } from "../../../../test/support/decision-data.ts";
import { Decider } from "./decider.ts";
import { NO_USER } from "./wish.ts";

const OWN_PORT = 7890;
const ipOf = (text: string): Ip => parseIp(text) ?? assert.fail(text);

/** One with a tunnel to each of these, by number of the listener, and behind them a listener of users. */
function openDecider(targets: readonly (readonly [ip: string, port: number])[]) {
  const shared = new AcceptMemory(newAcceptMemory(SLOT + 1));
  const word = new VersionWord();
  using ports = decisionPorts();
  const decider = new Decider(shared, { reportLazily() {}, mayBeOwn: () => false }, word, ports.port2);
  const facts = { name: "in", root: MAIN_LIST, fixed: null };
  const tunnels = targets.map(([to, port]) => ({
    ...facts,
    users: null,
    destination: { ip: ipOf(to), port },
  }));
  const users = { protocol: "trojan", type: "Trojan", keys: ["a"], names: ["alice"] };
  const listeners = [...tunnels, { ...facts, users, destination: null }];
  ports.port1.postMessage({ ...decisionData(1), listeners, ownPorts: new Set([OWN_PORT]) });
  decider.takeVersion();
  word.present = 1;
  const local = new Uint8Array(SOCKADDR_BYTES);
  encodeSockaddr(local, { address: bytesOfIp(ipOf("192.0.2.1")), port: 5000 });
  const decides = (from: string, listener: number): boolean => {
    encodeSockaddr(shared.source(SLOT), { address: bytesOfIp(ipOf(from)), port: 4000 });
    const wish = decider.wishOf(listener) ?? assert.fail("it knows no destination");
    const dial = decider.decide({ ...wish, user: NO_USER, slot: SLOT, listener, local });
    decider.slots.giveUp(SLOT);
    return dial !== null;
  };
  const decidesForUser = (from: string, to: string): boolean => {
    encodeSockaddr(shared.source(SLOT), { address: bytesOfIp(ipOf(from)), port: 4000 });
    const destination = { host: null, ip: ipOf(to), port: 22 };
    const wish = { type: "Trojan", destination, success: () => new Uint8Array(), user: 0 } as const;
    const dial = decider.decide({ ...wish, slot: SLOT, listener: targets.length, local });
    decider.slots.giveUp(SLOT);
    return dial !== null;
  };
  return { decides, decidesForUser, word };
}

const HERE = ["127.0.0.1", "::1"];
const LAN = ["192.168.1.7", "fd00::7"];

test("a tunnel to this machine is not for a client from elsewhere to be decided by a worker", () => {
  const { decides } = openDecider([
    ["127.0.0.1", 22],
    ["::1", 22],
    ["0.0.0.0", 22],
    ["198.51.100.1", 22],
  ]);
  for (const at of [0, 1, 2]) for (const from of LAN) assert.equal(decides(from, at), false, `${from} ${at}`);
  for (const at of [0, 1, 2]) for (const from of HERE) assert.equal(decides(from, at), true, `${from} ${at}`);
  for (const from of [...HERE, ...LAN]) assert.equal(decides(from, 3), true);
});

test("a user from elsewhere is let into private networks by the main thread alone", () => {
  const private_ = ["192.168.1.50", "10.0.0.5", "fd00::5", "127.0.0.1"] as const;
  const { decidesForUser } = openDecider(private_.map((ip) => [ip, 22]));
  for (const to of private_) {
    for (const from of [...LAN, "198.51.100.7"]) assert.equal(decidesForUser(from, to), false, from);
    for (const from of HERE) assert.equal(decidesForUser(from, to), true, from);
  }
  for (const from of [...HERE, ...LAN, "198.51.100.7"])
    assert.equal(decidesForUser(from, "203.0.113.9"), true, from);
});

test("a tunnel to a port of our own listeners is for no worker to decide", () => {
  const { decides } = openDecider([
    ["127.0.0.1", OWN_PORT],
    ["192.168.1.1", OWN_PORT],
  ]);
  for (const at of [0, 1]) for (const from of [...HERE, ...LAN]) assert.equal(decides(from, at), false);
});

test("a tunnel's target is nothing to go by once its version is out of force", () => {
  const { decides, word } = openDecider([["198.51.100.1", 22]]);
  word.present = 0;
  assert.equal(decides("127.0.0.1", 0), false);
  word.present = 2;
  assert.equal(decides("127.0.0.1", 0), false);
  word.present = 1;
  assert.equal(decides("127.0.0.1", 0), true);
});
