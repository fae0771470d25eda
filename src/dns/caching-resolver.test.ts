import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { skipLarge } from "../../test/support/runs.ts";
import { bareAnswer } from "./answer.ts";
import { CachingResolver } from "./caching-resolver.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";
import type { Won } from "./race.ts";
import { TYPE } from "./types.ts";
import { abortion } from "./upstream/wire.ts";

const BOUND = 4096;

/** Names that begin with "slow" get no answer. */
function open() {
  const asked: string[] = [];
  const ask = async (query: Query, signal: AbortSignal): Promise<Won> => {
    asked.push(query.name);
    if (query.name.startsWith("slow")) await abortion(signal).aborted;
    return { packet: bareAnswer(query, 0), keep: true };
  };
  const strategy = { ask, choose: () => ({ by: "nameserver", upstreams: [] }) };
  const cache = { algorithm: "lru", maxEntries: 16 } as const;
  const resolver = new CachingResolver({ role: "main", strategy, cache, log: SILENT, nowMs: () => 0 });
  const reader = new QueryReader();
  const find = (name: string) => {
    const found = resolver.answer(
      reader.read(encodeQuestion(name, TYPE.A)) as Query,
      new AbortController().signal,
    );
    found.catch(() => {}); // handled below
    return found;
  };
  return { asked, find, [Symbol.dispose]: () => resolver[Symbol.dispose]() };
}

test(
  "thousands of names without an answer leave room for others: the oldest give way",
  { skip: skipLarge },
  async () => {
    using resolver = open();
    const slow = Array.from({ length: BOUND }, (_, at) => resolver.find(`slow${at}.org`));
    const quick = resolver.find("quick.org");
    void resolver.find("slow0.org"); // again: the next one gives way
    assert.equal((await quick).packet.rcode, 0);
    for (const gone of slow.slice(0, 2)) await assert.rejects(gone, /too many DNS questions at once/);
    void resolver.find("slow0.org");
    assert.equal(resolver.asked.filter((name) => name === "slow0.org").length, 2, "it is still under way");
  },
);

test("a resolver that is closed ends every question", async () => {
  const resolver = open();
  const before = resolver.find("slow.org");
  resolver[Symbol.dispose]();
  await assert.rejects(before, /the resolver is closed/);
  await assert.rejects(resolver.find("slower.org"), /the resolver is closed/);
});
