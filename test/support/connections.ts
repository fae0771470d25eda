/** What holds of every relayed connection, whatever protocol its client speaks and whichever backend relays it. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { echoed, readAll } from "./client.ts";
import { echo, openTcpOrigin, type Origin, source } from "./origin.ts";
import { until } from "./until.ts";
import { unlimited, type Relayed, type RelayedOptions } from "./relayed.ts";

/** A way from clients to one origin. */
export interface Way extends AsyncDisposable {
  /** All on the way. */
  readonly relays: readonly Relayed[];
  /** A client that is connected; what it writes and reads is plain. */
  dial(): Promise<Duplex>;
}

export type OpenWay = (originPort: number, options?: RelayedOptions) => Promise<Way>;

export const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Sizes of what one side writes before it ends. */
const script = fc.array(fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 300_000 })), {
  maxLength: 8,
});

async function play(stream: Duplex, blocks: readonly Buffer[], pauseMs: number): Promise<void> {
  for (const block of blocks) {
    if (!stream.write(block)) await once(stream, "drain");
    else if (pauseMs > 0) await delay(pauseMs);
  }
  stream.end();
}

export interface Runs {
  readonly numRuns: number;
  /** Between blocks that are not held up, so that a connection lasts a few turns. */
  readonly pauseMs?: number;
  /** Connections that workers have taken, of which there must be one. Some end before: then all runs are done once more. */
  readonly taken?: (() => number) | undefined;
}

/** All connections of that many rounds of runs do not end before a worker has taken one. */
const MOST_ROUNDS = 10;

/** Whatever both sides write arrives whole, half-closes too, and is counted by every relay. */
export async function arrivesWhole(open: OpenWay, { numRuns, pauseMs = 0, taken }: Runs): Promise<void> {
  const one = async (up: readonly Buffer[], down: readonly Buffer[]): Promise<void> => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    await using origin = await openTcpOrigin(resolve);
    await using way = await open(origin.port);
    const client = await way.dial();
    const atClient = readAll(client);
    const sent = play(client, up, pauseMs);
    const remote = await accepted; // some dial only when there is something to say
    const atRemote = readAll(remote);
    await Promise.all([sent, play(remote, down, pauseMs)]);
    const [fromClient, fromRemote] = [Buffer.concat(up), Buffer.concat(down)];
    assert.equal(hashOf(await atRemote), hashOf(fromClient));
    assert.equal(hashOf(await atClient), hashOf(fromRemote));
    for (const relayed of way.relays) {
      await relayed.untilSettled();
      assert.deepEqual(relayed.bytes, { upload: fromClient.length, download: fromRemote.length });
    }
  };
  const blocks = (sizes: readonly number[]) => sizes.map((size) => randomBytes(size));
  const property = fc.asyncProperty(script, script, (up, down) => one(blocks(up), blocks(down)));
  const before = taken?.();
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await fc.assert(property, { numRuns });
    if (taken?.() !== before || before === undefined) return;
  }
  assert.fail("no worker took any");
}

/** Bulk both ways at once, to a client that does not read at first. */
export async function readsSlowly(open: OpenWay): Promise<void> {
  await using origin = await openTcpOrigin(echo);
  await using way = await open(origin.port);
  const client = await way.dial();
  await echoed(client, 5);
  const bytes = randomBytes(24 << 20);
  client.pause();
  client.end(bytes);
  await delay(50); // all stands still by now on most machines; the outcome must not depend on it
  const back = readAll(client);
  client.resume();
  assert.equal(hashOf(await back), hashOf(bytes));
}

/** What is written at a time until workers have a connection. */
const PIECE_BYTES = 20_000;

/**
 * An upload to a far side that says nothing until it has all. `isHandedOver`: have so many relays on the way given the
 * connection to workers?
 */
export async function uploadsInSilence(
  open: OpenWay,
  isHandedOver: (relays: number) => boolean,
): Promise<void> {
  const [upload, answer] = [randomBytes(8 << 20), randomBytes(1 << 20)];
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin(resolve);
  await using way = await open(origin.port);
  const client = await way.dial();
  const atClient = readAll(client);
  let sent = 0;
  const sendPiece = (): boolean => client.write(upload.subarray(sent, (sent += PIECE_BYTES)));
  sendPiece();
  const remote = await accepted;
  const atRemote = readAll(remote);
  await until("workers have it", () => {
    if (sent + PIECE_BYTES < upload.length) sendPiece();
    return isHandedOver(way.relays.length);
  });
  client.end(upload.subarray(sent));
  assert.equal(hashOf(await atRemote), hashOf(upload));
  remote.end(answer);
  assert.equal(hashOf(await atClient), hashOf(answer));
  for (const relayed of way.relays) {
    await relayed.untilSettled();
    assert.deepEqual(relayed.bytes, { upload: upload.length, download: answer.length });
  }
}

/** A client goes without an end in the middle of a download that has none: all that is on the way closes. */
export async function leavesDownload(
  open: OpenWay,
  isHandedOver: (relays: number) => boolean,
): Promise<void> {
  const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
  await using origin = await openTcpOrigin((socket) => {
    source(Infinity).on(socket);
    resolve(socket);
  });
  await using way = await open(origin.port);
  const client = await way.dial();
  client.on("error", () => {});
  let received = 0;
  client.on("data", (bytes: Buffer) => (received += bytes.length));
  client.write("go"); // some dial only when there is something to say
  const remote = await accepted;
  await until("workers have it", () => received > 4 << 20 && isHandedOver(way.relays.length));
  client.destroy();
  await until("the origin's connection closes", () => remote.destroyed);
  for (const relayed of way.relays) {
    await relayed.untilSettled();
    assert.ok((relayed.bytes.download ?? 0) >= 4 << 20);
  }
}

export interface Echoes extends Origin {
  /** The latest connection at the origin. */
  latest(): Socket;
}

/** An origin whose connections the test can break. */
export async function openEchoes(): Promise<Echoes> {
  const remotes: Socket[] = [];
  const origin = await openTcpOrigin((socket) => {
    remotes.push(socket);
    echo(socket);
  });
  return { ...origin, latest: () => remotes.at(-1) as Socket };
}

/** A meter cuts into pieces and holds now and then; all is paid for, and all arrives. */
export async function keepsToALimit(open: OpenWay): Promise<void> {
  await using origin = await openTcpOrigin((socket) => void socket.resume().end(randomBytes(400_000)));
  let paidBytes = 0;
  let pieces = 0;
  const meter = {
    ...unlimited,
    free: false,
    pieceBytes: 20_000,
    reserve: (_: string, bytes: number) => ((paidBytes += bytes), pieces++ % 8 === 0 ? 2 : 0),
    adjust: (_: string, bytes: number) => void (paidBytes += bytes),
  };
  await using way = await open(origin.port, { meter });
  const client = await way.dial();
  client.write("go"); // some dial only when there is something to say
  assert.equal((await readAll(client)).length, 400_000);
  client.end();
  await way.relays[0]?.untilSettled();
  assert.equal(paidBytes, 400_002);
  assert.ok(pieces >= 20, `${pieces} pieces`);
}
