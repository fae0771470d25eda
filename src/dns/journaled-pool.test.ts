import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { until } from "../../test/support/until.ts";
import { JournaledPool, type FakeIpBatch } from "./journaled-pool.ts";

const RANGE = { ip: "198.18.0.1" as Ip, bits: 16 };

test("journaled pool: a store that is new to it is told all in batches, beginning with that it is", () => {
  const told: FakeIpBatch[] = [];
  const journaled = new JournaledPool(4, RANGE, null);
  for (let at = 0; at < 2_500; at++) journaled.pool.allocate(`n${at}.org`);
  journaled.write();
  journaled.persistTo((batch) => void told.push(batch));
  journaled.write();
  assert.deepEqual(
    told.map(({ isAnew, pairs }) => [isAnew, pairs.length]),
    [
      [true, 1_000],
      [false, 1_000],
      [false, 500],
    ],
  );
  assert.deepEqual(told[0]?.pairs[0], ["n0.org", "198.18.0.4"]);
});

test("journaled pool: the store of another runtime is told what changed since, and nothing twice", async () => {
  const [first, second]: FakeIpBatch[][] = [[], []];
  const journaled = new JournaledPool(4, RANGE, (batch) => void first?.push(batch));
  journaled.pool.allocate("a.org");
  await until("it is written by itself", () => first?.length === 1);
  journaled.pool.allocate("b.org");
  journaled.persistTo((batch) => void second?.push(batch));
  journaled.pool.flush();
  journaled.write();
  journaled.persistTo(null);
  journaled.pool.allocate("c.org");
  journaled.write();
  assert.deepEqual(
    first?.map(({ pairs }) => pairs),
    [[["a.org", "198.18.0.4"]]],
  );
  assert.deepEqual(
    second?.map(({ isAnew, pairs }) => [isAnew, new Map(pairs)]),
    [
      [
        false,
        new Map([
          ["b.org", null],
          ["a.org", null],
        ]),
      ],
    ],
  );
});

test("journaled pool: another process gives out new addresses, until there is none", async () => {
  const journaled = new JournaledPool(4, RANGE, null);
  const known = journaled.addressOf("known.org");
  const answer = Promise.withResolvers<Ip>();
  const asked: string[] = [];
  const elsewhere = (_family: 4 | 6, host: string): Promise<Ip> => {
    asked.push(host);
    return host === "waits.org" ? answer.promise : Promise.resolve("198.18.0.9" as Ip);
  };
  assert.deepEqual([...journaled.giveTo(elsewhere).pairs], [["known.org", known]]);
  assert.equal(journaled.addressOf("known.org"), known);
  assert.equal(await journaled.addressOf("new.org"), "198.18.0.9");
  assert.equal(journaled.addressOf("new.org"), "198.18.0.9");
  const waiting = journaled.addressOf("waits.org");
  journaled.takeBack();
  answer.reject(new Error("it has ended"));
  assert.equal(await waiting, "198.18.0.5");
  assert.deepEqual(asked, ["new.org", "waits.org"]);
  journaled.giveTo(() => Promise.reject(new Error("it gives none")));
  await assert.rejects(Promise.resolve(journaled.addressOf("none.org")), /it gives none/);
});
