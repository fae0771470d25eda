import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { bareAnswer } from "./answer.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";
import { allRefused, raceUpstreams } from "./race.ts";
import { RCODE } from "./types.ts";
import { openServerList } from "./upstream/server-list.ts";
import type { Upstream } from "./upstream/upstream.ts";

const question = encodeQuestion("example.org", 1);
const { signal } = new AbortController();

function upstream(exchange: Upstream["exchange"]): Upstream {
  return { text: "test", fixed: false, exchange, reset() {}, async [Symbol.asyncDispose]() {} };
}

const refusing = () =>
  upstream(async () => bareAnswer(new QueryReader().read(question) as Query, RCODE.REFUSED).bytes);
const broken = () => upstream(() => Promise.reject(new Error("no way there")));

const failure = async (upstreams: readonly Upstream[]): Promise<unknown> =>
  raceUpstreams(upstreams, question, signal).catch((error: unknown) => error);

test("all refused: every server answered, also those behind an entry like system", async () => {
  const current = async () => ["192.0.2.1" as Ip, "192.0.2.2" as Ip];
  const system = openServerList({ text: "system", current, forget() {}, openServer: refusing, exit: null });
  assert.equal(allRefused(await failure([refusing(), system])), true);
  assert.equal(allRefused(await failure([refusing(), broken()])), false);
});
