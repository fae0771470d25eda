import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import { until } from "../../../test/support/until.ts";
import { fasterOf } from "./faster.ts";
import type { AskingClient, DialClient } from "./kept-client.ts";

const life = new AbortController().signal;

/** A way that opens, or fails, when the test says so. */
function way() {
  const dials: { signal: AbortSignal; open(): AskingClient; fail(why: string): void }[] = [];
  const closed: AskingClient[] = [];
  const dial: DialClient = (signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<AskingClient>();
    const client: AskingClient = {
      ask: async () => new Uint8Array(),
      retire() {},
      close: () => void closed.push(client),
    };
    dials.push({
      signal,
      open: () => (resolve(client), client),
      fail: (why) => reject(new DialError("failed", why)),
    });
    return promise;
  };
  return { dial, dials, closed };
}

/** Dials begin behind timers and promises. */
const dialled = (way: { readonly dials: readonly object[] }, count: number) =>
  until(`dial ${count}`, () => way.dials.length === count, { everyMs: 1 });

test("both go at first; the loser is stopped, and closed where it opens all the same", async () => {
  const [one, other] = [way(), way()];
  const opening = fasterOf(one.dial, other.dial)(life);
  await dialled(one, 1);
  await dialled(other, 1);
  const won = other.dials[0]?.open();
  assert.equal(await opening, won);
  assert.deepEqual([one.dials[0]?.signal.aborted, other.dials[0]?.signal.aborted], [true, false]);
  const late = one.dials[0]?.open();
  await until("its end", () => one.closed.length > 0, { everyMs: 1 });
  assert.deepEqual([one.closed, other.closed], [[late], []]);
});

test("the winner goes alone the next time, and the other where it fails", async () => {
  const [one, other] = [way(), way()];
  const dial = fasterOf(one.dial, other.dial, 60_000);
  const first = dial(life);
  await dialled(other, 1);
  other.dials[0]?.open();
  await first;
  const second = dial(life);
  await dialled(other, 2);
  assert.equal(one.dials.length, 1);
  other.dials[1]?.fail("gone");
  await dialled(one, 2);
  const back = one.dials[1]?.open();
  assert.equal(await second, back);
});

test("where neither opens the error has both reasons", async () => {
  const [one, other] = [way(), way()];
  const opening = fasterOf(one.dial, other.dial)(life);
  await dialled(one, 1);
  await dialled(other, 1);
  one.dials[0]?.fail("no datagrams");
  other.dials[0]?.fail("no stream");
  await assert.rejects(opening, new DialError("failed", "no datagrams; no stream"));
});
