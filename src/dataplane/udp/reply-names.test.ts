import assert from "node:assert/strict";
import { test } from "node:test";
import type { Destination, Ip } from "#core/session.ts";
import { ReplyNames } from "./reply-names.ts";

const at = (ip: string, port = 443): Destination => ({ host: null, ip: ip as Ip, port });
const named = (host: string, port = 443): Destination => ({ host, ip: null, port });

test("a client that wrote to a fake address gets replies from that address", () => {
  const names = new ReplyNames(8);
  names.add(at("198.18.0.5"), named("example.com"));
  assert.deepEqual(names.nameOf(at("203.0.113.9")), at("198.18.0.5"));
  assert.deepEqual(
    names.nameOf({ host: "example.com", ip: "203.0.113.9" as Ip, port: 443 }),
    at("198.18.0.5"),
  );
  assert.deepEqual(
    names.nameOf(at("203.0.113.9", 80)),
    at("203.0.113.9", 80),
    "another port is another peer",
  );
});

test("a client that wrote to a name, or to the real address, gets replies from the real source", () => {
  const names = new ReplyNames(8);
  names.add(named("example.com"), named("example.com"));
  assert.deepEqual(
    names.nameOf({ host: "example.com", ip: "203.0.113.9" as Ip, port: 443 }),
    at("203.0.113.9"),
  );
  names.add(at("203.0.113.7"), at("203.0.113.7"));
  assert.deepEqual(names.nameOf(at("203.0.113.7")), at("203.0.113.7"));
  assert.deepEqual(names.nameOf(named("far.example")), named("far.example"));
});

test("an address of `hosts` is turned back", () => {
  const names = new ReplyNames(8);
  names.add(at("198.18.0.5"), { host: "nas.lan", ip: "192.0.2.4" as Ip, port: 443 });
  assert.deepEqual(names.nameOf(at("192.0.2.4")), at("198.18.0.5"));
});

test("two names on one port share a path only while no client insists on an address", () => {
  const names = new ReplyNames(8);
  names.add(named("a.example"), named("a.example"));
  assert.ok(names.accepts(named("b.example"), named("b.example")));
  assert.ok(!names.accepts(at("198.18.0.6"), named("b.example")));
  assert.ok(names.accepts(at("198.18.0.6", 53), named("b.example", 53)));
  assert.ok(names.accepts(at("192.0.2.1"), at("192.0.2.1")));
});

test("what is remembered is bounded", () => {
  const names = new ReplyNames(4);
  for (let n = 0; n < 100; n++)
    names.add(at(`198.18.0.${n}`), { host: null, ip: `192.0.2.${n}` as Ip, port: 1 });
  assert.deepEqual(names.nameOf(at("192.0.2.99", 1)), at("198.18.0.99"));
  assert.deepEqual(names.nameOf(at("192.0.2.1", 1)), at("192.0.2.1", 1));
});
