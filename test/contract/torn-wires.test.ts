/**
 * Our clients with our listeners over wires that are cut at every byte, give single bytes, hold everything together,
 * break off or turn to noise at every byte. Whatever happens, both sides close, and only with errors that are meant.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  openTornPeers,
  PAYLOAD,
  type Spoken,
  type TornPeers,
  type TornRow,
  wantedBy,
} from "../support/torn-peers.ts";
import { TORN_ROWS } from "../support/torn-rows.ts";
import type { Tear } from "../support/torn-wire.ts";

const AT_ONCE = 64;
/** Noise is random, and most places are alike: so many of them, anywhere. */
const NOISY_PLACES = 40;

for (const row of TORN_ROWS)
  test(`torn wires: ${row.name}`, { timeout: 120_000 }, async () => {
    await using peers = await openTornPeers(row);
    const { up, down } = await record(peers, row);
    const again = async (what: string, tear: Tear): Promise<void> =>
      assertWhole(await peers.converse(tear, tear), row, what);
    await again("bytes held for 20 ms", { holdMs: 20 });
    await again("single bytes", { pieceBytes: 1 });
    await everywhere(Math.max(up.length, down.length), row, (at) => again(`cut at ${at}`, { cutAt: at }));
    await everywhere(up.length, row, async (at) =>
      assertMeant(await peers.converse({ endAt: at }, {}), row, `request ended at ${at}`),
    );
    await everywhere(down.length, row, async (at) =>
      assertMeant(await peers.converse({}, { endAt: at }), row, `answer ended at ${at}`),
    );
    await noise(peers, up.length, (at) => [{ spoilAt: at }, {}]);
    await noise(peers, down.length, (at) => [{}, { spoilAt: at }]);
  });

for (const row of TORN_ROWS.filter(({ unrepeatable }) => unrepeatable !== true))
  test(`all at once: ${row.name}`, { timeout: 60_000 }, async () => {
    await using peers = await openTornPeers(row);
    await using others = await openTornPeers(row); // which will not have met this request, and are older than it
    const { up, down } = await record(peers, row);
    assert.deepEqual(await others.replay(up), [wantedBy(row)]);
    if (row.answersAlone === true) assertPayload(await peers.listenTo(down), "all of the answer");
  });

async function record(
  peers: TornPeers,
  row: TornRow,
): Promise<{ readonly up: Buffer; readonly down: Buffer }> {
  const [up, down]: [Buffer[], Buffer[]] = [[], []];
  let isAnswered = false; // what follows is the client's end
  const watch = (list: Buffer[]): Tear => ({ watch: (bytes) => void (isAnswered || list.push(bytes)) });
  const spoken = await peers.converse(watch(up), watch(down), () => (isAnswered = true));
  assertWhole(spoken, row, "whole");
  return { up: Buffer.concat(up), down: Buffer.concat(down) };
}

function assertPayload(result: Buffer | Error, what: string): void {
  if (result instanceof Error) throw new Error(`${what}: ${result.message}`, { cause: result });
  assert.equal(result.toString("latin1"), PAYLOAD.toString("latin1"), what);
}

function assertWhole({ result, asked }: Spoken, row: TornRow, what: string): void {
  assertPayload(result, what);
  assert.deepEqual(asked, [wantedBy(row)], what);
}

/** Faults of ours, whichever side sent the bytes. */
const OURS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "AssertionError"]);

/** What arrived is right as far as it goes, and nothing else was asked for. */
function assertMeant({ result, asked }: Spoken, row: TornRow, what: string): void {
  for (const destination of asked) assert.deepEqual(destination, wantedBy(row), what);
  if (result instanceof Error) assertNotOurs(result, what);
  else assert.ok(PAYLOAD.subarray(0, result.length).equals(result), what);
}

function assertNotOurs(error: Error, what: string): void {
  if (OURS.has(error.name) || error.message.startsWith("nothing came back"))
    throw new Error(what, { cause: error });
  if (error.cause instanceof Error) assertNotOurs(error.cause, what);
}

async function noise(
  peers: TornPeers,
  size: number,
  tears: (at: number) => readonly [up: Tear, down: Tear],
): Promise<void> {
  const step = Math.max(1, Math.floor(size / NOISY_PLACES));
  await everywhere(size, { step }, async (at) => {
    const { result } = await peers.converse(...tears(at));
    if (result instanceof Error) assertNotOurs(result, `noise from ${at}`);
  });
}

async function everywhere(
  size: number,
  { step = 1 }: Pick<TornRow, "step">,
  visit: (at: number) => Promise<void>,
): Promise<void> {
  const places = Array.from({ length: Math.floor((size - 1) / step) }, (_, index) => 1 + index * step);
  for (let from = 0; from < places.length; from += AT_ONCE)
    await Promise.all(places.slice(from, from + AT_ONCE).map(visit));
}
