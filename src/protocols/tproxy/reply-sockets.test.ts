import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointText, type Endpoint, type Ip } from "#core/session.ts";
import { ReplySockets } from "./reply-sockets.ts";

const at = (port: number): Endpoint => ({ ip: "192.0.2.1" as Ip, port });
/** Clients: each is one object for as long as its session lives. */
const a: Endpoint = { ip: "192.0.2.9" as Ip, port: 1 };
const b: Endpoint = { ip: "192.0.2.9" as Ip, port: 2 };

function fixture(max = 8) {
  const events: string[] = [];
  const state = { nowMs: 0, refuses: false };
  const sockets = new ReplySockets(
    (from) => {
      if (state.refuses) throw new Error("EADDRINUSE");
      events.push(`open ${from.port}`);
      return { send() {}, close: () => void events.push(`close ${from.port}`) };
    },
    (from, error) => events.push(`refused ${endpointText(from)}: ${(error as Error).message}`),
    { now: () => state.nowMs, max },
  );
  return { events, state, sockets };
}

test("sessions share a socket; the last one that leaves closes it", () => {
  const { events, sockets } = fixture();
  assert.equal(sockets.get(at(53), a), sockets.get(at(53), b));
  sockets.get(at(80), a);
  sockets.release(a);
  assert.deepEqual(events, ["open 53", "open 80", "close 80"]);
  sockets.release(b);
  sockets.release(b);
  assert.equal(sockets.size, 0);
  assert.deepEqual(events.slice(3), ["close 53"]);
});

test("at the bound the oldest goes, and comes back when needed", () => {
  const { events, sockets } = fixture(2);
  for (const port of [1, 2, 3, 1]) sockets.get(at(port), a);
  assert.deepEqual(events, ["open 1", "open 2", "close 1", "open 3", "close 2", "open 1"]);
  sockets.release(a);
  assert.deepEqual(events.slice(6).toSorted(), ["close 1", "close 3"]);
});

test("a refusal is logged once and tried again later", () => {
  const { events, state, sockets } = fixture();
  state.refuses = true;
  assert.equal(sockets.get(at(53), a), null);
  assert.equal(sockets.get(at(53), b), null);
  assert.deepEqual(events, ["refused 192.0.2.1:53: EADDRINUSE"]);
  state.nowMs = 5_000;
  state.refuses = false;
  assert.ok(sockets.get(at(53), a));
  sockets.release(a);
  sockets.release(b);
  assert.equal(sockets.size, 0);
});
