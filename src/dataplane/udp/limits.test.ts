import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { DatagramBudget, type Occupant } from "./limits.ts";

class Session implements Occupant {
  readonly source: Ip;
  readonly user: string | null;
  usedAtMs = 0;
  isOpen = true;

  constructor(source: string, user: string | null) {
    this.source = source as Ip;
    this.user = user;
  }

  expire(): void {
    this.isOpen = false;
  }
}

const NOW_MS = 60_000;

/** A table of 80 sessions, and those who open some, all of which are in use. */
class Table {
  readonly #budget = new DatagramBudget({ sessions: 80, sessionsPerSource: 20 });

  open(source: string, user: string | null): Session | null {
    const session = new Session(source, user);
    session.usedAtMs = NOW_MS;
    return this.#budget.enter(session, NOW_MS) ? session : null;
  }

  openMany(count: number, sourceOf: (at: number) => string, user: string | null): readonly Session[] {
    const opened = Array.from({ length: count }, (_, at) => this.open(sourceOf(at), user));
    return opened.filter((session) => session !== null);
  }
}

const countOf = (sessions: readonly Session[]): number => sessions.filter(({ isOpen }) => isOpen).length;

for (const [what, user, addressOf] of [
  ["a user with many addresses", "mallory", (at: number) => `192.0.2.${at % 8}`],
  ["a network of IPv6", null, (at: number) => `2001:db8:0:1::${(at % 8) + 1}`],
] as const)
  test(`${what} that keeps all sessions in use gives way to others, and pushes none of theirs out`, () => {
    const table = new Table();
    const hers = table.openMany(2, () => "198.51.100.1", "alice");
    for (const session of hers) session.usedAtMs = 0; // silent for a minute
    const all = table.openMany(200, addressOf, user);
    assert.equal(countOf(all), 78);
    assert.equal(countOf(hers), 2, "who holds most displaces its own");
    for (const session of hers) session.usedAtMs = NOW_MS;
    const his = table.openMany(30, (at) => `198.51.100.${10 + (at % 3)}`, "bob");
    assert.ok(his.length >= 20 && countOf(his) === his.length, `${his.length} were let in`);
    assert.equal(countOf(all), 78 - his.length);
    assert.equal(table.open(addressOf(0), user), null);
    assert.deepEqual([countOf(hers), countOf(his)], [2, his.length]);
  });
