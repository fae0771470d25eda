/** Datagrams of managed users with limits, in the real program: what is beyond a speed is dropped, who is beyond an
 * address limit is refused, and no other user notices. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { DatagramFlow, Destination, Ip } from "#core/session.ts";
import { type AnyJson, ManagedCore, TLS_KEYS } from "../support/managed-core.ts";
import { starvedMs } from "../support/starved.ts";
import {
  ANYTLS,
  type Carrier,
  carrierListeners,
  CLIENT_TLS,
  dialerFrom,
  FOREVER,
  HYSTERIA2,
  ofVless,
  TUIC,
} from "../support/user-traffic.ts";
import { until } from "../support/until.ts";

const CARRIERS: readonly Carrier[] = [
  ofVless("xudp", TLS_KEYS, CLIENT_TLS),
  ofVless("plain", TLS_KEYS, { ...CLIENT_TLS, "packet-encoding": "none" }),
  ANYTLS,
  HYSTERIA2,
  TUIC,
];
/** What the contract allows until a limit is kept. */
const LIMIT_MS = 1000;

let core: ManagedCore;
let echo: DatagramEcho;
before(async () => {
  core = await ManagedCore.start(carrierListeners(CARRIERS));
  echo = await DatagramEcho.open();
});
after(async () => {
  await core[Symbol.asyncDispose]();
  await echo[Symbol.asyncDispose]();
});

const LABEL_BYTES = 8;

/** Sends everything back and counts it by the number that stands first in each datagram. */
class DatagramEcho implements AsyncDisposable {
  readonly destination: Destination;
  readonly #socket: Socket;
  readonly #bytes = new Map<number, number>();

  private constructor(socket: Socket) {
    this.#socket = socket;
    const { port } = socket.address() as AddressInfo;
    this.destination = { host: null, ip: "127.0.0.1" as Ip, port };
    socket.on("message", (payload, from) => {
      const label = payload.readUInt32BE(0);
      this.#bytes.set(label, this.bytesOf(label) + payload.length);
      socket.send(payload, from.port, from.address);
    });
  }

  static async open(): Promise<DatagramEcho> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 1 << 20 });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new DatagramEcho(socket);
  }

  bytesOf(label: number): number {
    return this.#bytes.get(label) ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, "close");
  }
}

let labels = 0;

/** A steady stream of datagrams to the echo, by the clock: after a pause the missed ones follow at once. */
class Stream implements AsyncDisposable {
  readonly label = ++labels;
  sentBytes = 0;
  backBytes = 0;
  /** From sending to coming back, of every datagram. */
  readonly tookMs: number[] = [];
  readonly beganMs = performance.now();
  readonly flow: DatagramFlow;
  readonly #timer: NodeJS.Timeout;

  private constructor(flow: DatagramFlow, bytesPerSecond: number, sizeBytes: number) {
    this.flow = flow;
    const { beganMs } = this;
    flow.receive(({ payload }) => {
      this.backBytes += payload.length;
      this.tookMs.push(performance.now() - beganMs - Buffer.from(payload).readUInt32BE(4));
    });
    this.#timer = setInterval(() => {
      const nowMs = performance.now() - beganMs;
      while (this.sentBytes < (nowMs / 1000) * bytesPerSecond) {
        const payload = Buffer.alloc(sizeBytes);
        payload.writeUInt32BE(this.label);
        payload.writeUInt32BE(Math.floor(nowMs), 4);
        flow.send({ payload, destination: echo.destination });
        this.sentBytes += sizeBytes;
      }
    }, 10);
  }

  static async open(outbound: Outbound, bytesPerSecond: number, sizeBytes = 1250): Promise<Stream> {
    assert.ok(sizeBytes >= LABEL_BYTES);
    const flow = await outbound.associate(echo.destination, { signal: FOREVER, metadata: null });
    return new Stream(flow, bytesPerSecond, sizeBytes);
  }

  get thereBytes(): number {
    return echo.bytesOf(this.label);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.flow[Symbol.asyncDispose]();
  }
}

let made = 0;

async function clientOf(backend: Carrier, limits: object): Promise<readonly [AnyJson, Outbound]> {
  const user = await core.create(backend.tag, `user ${made++}`, limits);
  return [user, await open(backend, user)];
}

const open = async (backend: Carrier, user: AnyJson, dialer?: Dialer): Promise<Outbound> =>
  backend.open(await core.core.port(backend.tag), user, dialer);

const LIMIT_BPS = 1_000_000;
const LIMIT_BYTES = LIMIT_BPS / 8;
/** What a limit of this size lets through at once, generously. */
const BURST_BYTES = LIMIT_BYTES / 10;
const SECONDS = 2;
const ROUNDS = 5;

interface Lane {
  readonly name: string;
  readonly stream: Stream;
  /** Bytes that came through the limit. */
  readonly through: () => number;
}

test("speed: datagrams beyond a user's rate are dropped, within 5 %, and none is kept for later", async (context) => {
  await using stack = new AsyncDisposableStack();
  const queues: Lane[] = [];
  const others: Stream[] = [];
  for (const backend of CARRIERS) {
    const start = async (limits: object, bytesPerSecond: number) => {
      const [, outbound] = await clientOf(backend, limits);
      stack.use(outbound);
      return stack.use(await Stream.open(outbound, bytesPerSecond));
    };
    const up = await start({ upload_bps: LIMIT_BPS }, LIMIT_BYTES * 2);
    queues.push({ name: `${backend.tag} upload`, stream: up, through: () => up.thereBytes });
    const down = await start({ download_bps: LIMIT_BPS }, LIMIT_BYTES * 2);
    queues.push({ name: `${backend.tag} download`, stream: down, through: () => down.backBytes });
    others.push(await start({}, 20_000));
  }
  await sleep(500); // the first burst has passed
  let missing = queues;
  const forgiven = new Set<Lane>();
  for (let round = 0; round < ROUNDS && missing.length > 0; round++) {
    const { pid } = core.core;
    const before = {
      starvedMs: starvedMs(pid),
      nowMs: performance.now(),
      bytes: missing.map((lane) => lane.through()),
    };
    await sleep(SECONDS * 1000);
    const seconds = (performance.now() - before.nowMs) / 1000;
    const off = missing.map(
      (lane, at) => (lane.through() - (before.bytes[at] as number)) / seconds / LIMIT_BYTES - 1,
    );
    const starved = (starvedMs(pid) - before.starvedMs) / (SECONDS * 1000);
    context.diagnostic(`the program waited for a CPU ${(starved * 100).toFixed(1)} % of the time`);
    for (const [at, { name }] of missing.entries())
      context.diagnostic(`${name}: ${((off[at] as number) * 100).toFixed(1)} %`);
    // A program that waits for a CPU longer than a burst lets less through, which is no fault of the limit.
    if (starved > 0.02)
      for (const [at, lane] of missing.entries()) if (Math.abs(off[at] as number) < 0.3) forgiven.add(lane);
    missing = missing.filter((_, at) => Math.abs(off[at] as number) > 0.05);
  }
  assert.deepEqual(
    missing.filter((lane) => !forgiven.has(lane)).map(({ name }) => name),
    [],
  );
  for (const { name, stream, through } of queues) {
    const most = (LIMIT_BYTES * (performance.now() - stream.beganMs)) / 1000;
    assert.ok(through() <= most * 1.05 + BURST_BYTES, `${name}: above the limit since it began`);
    assert.ok(stream.sentBytes - through() > LIMIT_BYTES, `${name}: what was too much is gone`);
    const took = stream.tookMs.toSorted((a, b) => a - b);
    const medianMs = took[took.length >> 1] ?? Infinity;
    assert.ok(medianMs < 400, `${name}: those that came took ${medianMs} ms`); // a queue would hold half of all
  }
  for (const stream of others) stream.stop();
  for (const endMs = performance.now() + 5_000; performance.now() < endMs; await sleep(20))
    if (others.every(({ sentBytes, backBytes }) => sentBytes === backBytes)) break;
  assert.deepEqual(
    others.map(({ backBytes }) => backBytes),
    others.map(({ sentBytes }) => sentBytes),
    "others lose nothing",
  );
});

for (const backend of CARRIERS)
  test(`${backend.tag}: datagrams from another address are refused, and end when the limit shrinks, within a second`, async () => {
    await using stack = new AsyncDisposableStack();
    const [user, outbound] = await clientOf(backend, { ip_limit: 1 });
    const [, other] = await clientOf(backend, {});
    stack.use(outbound);
    stack.use(other);
    const elsewhere = stack.use(await open(backend, user, dialerFrom("127.0.0.2")));
    const here = stack.use(await Stream.open(outbound, 10_000, 100));
    const theirs = stack.use(await Stream.open(other, 10_000, 100));
    await moved(here);
    const refusedAtMs = performance.now();
    const refused = stack.use(await Stream.open(elsewhere, 10_000, 100));
    assert.ok((await refusal(backend, refused)) - refusedAtMs <= LIMIT_MS, "refused within a second");
    assert.equal(refused.thereBytes, 0);

    await core.change(backend.tag, "PUT", `/${user.id}`, { ip_limit: 2 });
    const second = stack.use(await Stream.open(elsewhere, 10_000, 100));
    await moved(second);
    const shrunkMs = performance.now();
    await core.change(backend.tag, "PUT", `/${user.id}`, { ip_limit: 1 });
    const endedMs = await refusal(backend, second);
    assert.ok(endedMs - shrunkMs <= LIMIT_MS, "ended within a second");
    await moved(here);
    await moved(theirs);
  });

/** Of many more than one every 10 ms. */
const SILENT_MS = 300;

/** When nothing more came of what the listener refuses: where clients are told, they were; else it is silent. */
async function refusal({ tellsEndOfFlow }: Carrier, stream: Stream): Promise<number> {
  if (tellsEndOfFlow.toClient) await stream.flow.closed;
  else
    for (let bytes = NaN; bytes !== stream.backBytes;) {
      bytes = stream.backBytes;
      await sleep(SILENT_MS);
    }
  return performance.now() - (tellsEndOfFlow.toClient ? 0 : SILENT_MS);
}

/** Settles when one more datagram has come back. */
async function moved(stream: Stream): Promise<void> {
  const before = stream.backBytes;
  await until("one more datagram", () => stream.backBytes !== before);
}
