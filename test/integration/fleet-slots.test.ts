/** Limits of addresses and connections over all nodes, and what is shown of them by node. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Ip, Session } from "#core/session.ts";
import type { FleetDatabase } from "../support/fleet.ts";
import { startFleetDatabase } from "../support/fleet.ts";
import { noPostgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { Bench, listener } from "../support/users-bench.ts";

const skip = noPostgres ?? false;
let database: FleetDatabase;
before(async () => {
  if (noPostgres === null) database = await startFleetDatabase();
});
after(() => database?.[Symbol.asyncDispose]());

/** A session of the one user on `edge`, from an address; it can be ended, and is, when it is beyond a limit. */
class Visit {
  readonly refusal: string | null;
  isOpen = true;
  readonly #leave: () => void;

  constructor(bench: Bench, ip: string) {
    const metadata = { inbound: { name: "edge", user: bench.first().id }, source: { ip: ip as Ip } };
    const end = async (): Promise<void> => this.end();
    const session = { network: "udp", metadata, flow: { [Symbol.asyncDispose]: end } };
    const entered = bench.users.enter(session as unknown as Session);
    this.refusal = typeof entered === "string" ? entered : null;
    this.#leave = typeof entered === "string" ? () => {} : () => entered.leave();
    if (this.refusal !== null) this.isOpen = false;
  }

  end(): void {
    if (this.isOpen) this.#leave();
    this.isOpen = false;
  }
}

async function pair(limits: object): Promise<readonly [Bench, Bench]> {
  const settings = await database.fresh();
  const a = new Bench({ fleet: settings("fra-1") });
  const b = new Bench({ fleet: settings("ams-1") });
  await a.adopt([listener("edge", "alice")]);
  await b.adopt([listener("edge")]);
  await a.admin.update(a.first().id, { revision: a.revision("edge"), limits });
  await until("the limits on b", () => b.first().limits.ips + b.first().limits.connections > 0);
  return [a, b];
}

test("addresses on all nodes count, one of two nodes once, and who came first stays", { skip }, async () => {
  const [a, b] = await pair({ ips: 2 });
  using _ = a;
  using __ = b;
  const first = new Visit(a, "192.0.2.1");
  const again = new Visit(b, "192.0.2.1");
  const second = new Visit(b, "192.0.2.2");
  const { id } = a.first();
  const known = async () => (await a.admin.fleet?.online(id))?.map(({ ip }) => ip).join(" ");
  await until("both are known", async () => (await known()) === "192.0.2.1 192.0.2.2");
  // By what this node knows by now it is refused at once, or it is ended by the answer.
  const third = new Visit(a, "192.0.2.3");
  await until("the third one is out", () => !third.isOpen);
  assert.deepEqual(
    [first, again, second].map(({ isOpen }) => isOpen),
    [true, true, true],
  );
  await until("refused at once", () => {
    const visit = new Visit(a, "192.0.2.4");
    visit.end();
    return visit.refusal?.startsWith("2 addresses are online") === true;
  });
  second.end();
  await until("room again", () => {
    const visit = new Visit(a, "192.0.2.4");
    visit.end();
    return visit.refusal === null;
  });
});

test("connections on all nodes count, and those that came last end", { skip }, async () => {
  const [a, b] = await pair({ connections: 5 });
  using _ = a;
  using __ = b;
  const early = Array.from({ length: 4 }, () => new Visit(a, "192.0.2.1"));
  await until("they are told", async () => {
    await b.admin.fleet?.freshen();
    return b.first().activeConnections === 4;
  });
  const late = Array.from({ length: 3 }, () => new Visit(b, "192.0.2.2"));
  const open = () => [early, late].map((visits) => visits.filter(({ isOpen }) => isOpen).length);
  await until(
    () => `one more: ${open()}`,
    () => `${open()}` === "4,1",
  );
  assert.equal(late[0]?.isOpen, true);
  const moved = await a.admin.fleet?.byNode(a.first().id);
  assert.deepEqual(
    moved?.get(a.first().id)?.map(({ node, connections }) => [node, connections]),
    [
      ["fra-1", 4],
      ["ams-1", 1],
    ],
  );
});

test("without the database the limits of the node itself hold", { skip }, async () => {
  const [a, b] = await pair({ ips: 1 });
  using _ = a;
  using __ = b;
  const here = new Visit(a, "192.0.2.1");
  await database.server.kill();
  const other = new Visit(b, "192.0.2.2");
  assert.deepEqual([here.isOpen, other.isOpen], [true, true]);
  assert.match(new Visit(b, "192.0.2.3").refusal ?? "", /^1 addresses/);
  await database.server.start();
  // The database has lost what was not logged; nodes tell it again, and one of the two is beyond the limit.
  await until("one is left", () => here.isOpen !== other.isOpen, { withinMs: 30_000 });
});
