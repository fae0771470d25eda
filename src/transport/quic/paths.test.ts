import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint, Ip } from "#core/endpoint.ts";
import { Path } from "./path.ts";
import { Paths } from "./paths.ts";

const at = (ip: string, port: number): Endpoint => ({ ip: ip as Ip, port });
const HOME = at("192.0.2.1", 1);
const opened = (): Paths => new Paths(new Path(HOME, true));

test("an address that is not validated gets three bytes for one", () => {
  const path = new Path(HOME, false);
  assert.ok(path.isHeldBack);
  path.receivedBytes = 500;
  assert.deepEqual([path.roomBytes, path.isHeldBack], [1500, false]);
  path.sentBytes = 301;
  assert.deepEqual([path.roomBytes, path.isHeldBack], [1199, true]);
  path.isValidated = true;
  assert.deepEqual([path.roomBytes, path.isHeldBack], [Infinity, false]);
});

test("datagrams of one address have one path; few paths of unknown addresses are remembered", () => {
  const paths = opened();
  assert.equal(paths.of(null), paths.current);
  assert.equal(paths.of({ ...HOME }), paths.current);
  const first = paths.of(at("192.0.2.9", 9));
  assert.equal(paths.of(at("192.0.2.9", 9)), first);
  for (let port = 10; port < 20; port++) paths.of(at("192.0.2.9", port));
  assert.notEqual(paths.of(at("192.0.2.9", 9)), first);
});

test("another port is believed, another host is asked three times, and then the peer is where it was", () => {
  const paths = opened();
  assert.equal(paths.move(paths.of(at("192.0.2.1", 2))), true);
  assert.ok(paths.current.isValidated);
  const before = paths.current;
  assert.equal(paths.move(paths.of(at("198.51.100.1", 2))), false);
  assert.ok(!paths.current.isValidated);
  let nowMs = 0;
  for (const wanted of ["again", "again", "back"] as const) {
    paths.ask(nowMs, 100);
    assert.equal(paths.onTimer(nowMs + 299), "stay");
    nowMs = paths.dueAtMs;
    assert.equal(paths.onTimer(nowMs), wanted);
  }
  assert.equal(paths.current, before);
  assert.equal(paths.dueAtMs, Infinity);
});

test("the answer validates the address that was asked, and nothing else does", () => {
  const paths = opened();
  paths.move(paths.of(at("198.51.100.1", 2)));
  const data = paths.ask(0, 100);
  paths.onAnswer(data.map((byte) => byte ^ 1));
  paths.onAnswer(new Uint8Array(7));
  assert.ok(!paths.current.isValidated);
  paths.onAnswer(data);
  assert.ok(paths.current.isValidated);
  assert.equal(paths.onTimer(10_000), "stay");
});

test("a peer that comes back in the meantime is not asked", () => {
  const paths = opened();
  const home = paths.current;
  paths.move(paths.of(at("198.51.100.1", 2)));
  paths.ask(0, 100);
  paths.move(paths.of(HOME));
  assert.equal(paths.current, home);
  assert.equal(paths.dueAtMs, Infinity);
});
