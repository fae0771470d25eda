/** What goes through a cell: bulk, many short connections, half-close, a late client, datagrams. Entered by SOCKS5. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Outbound } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { socks5 } from "#protocols/socks/index.ts";
import { inbox } from "../client.ts";
import { exchange } from "../exchange.ts";
import { countThenAnswer, echo, openTcpOrigin, openUdpEcho } from "../origin.ts";
import { openClient } from "../protocol-pair.ts";

export interface Amounts {
  readonly bulkBytes: number;
  readonly connections: number;
}

/** One word for each of the five, `FAIL` with a reason where it went wrong. */
export type Results = Readonly<Record<"bulk" | "short" | "half-close" | "late" | "udp", string>>;

const AT_ONCE = 32;
const STEP_TIMEOUT_MS = 90_000;
/** Longer than any client keeps its header back for a first payload. */
const LATE_MS = 700;
const DATAGRAM_SIZES = [5, 1_200];

/** `udp`: to how many destinations one flow can lead. */
export async function drive(
  socksPort: number,
  { bulkBytes, connections }: Amounts,
  udp: number,
): Promise<Results> {
  await using outbound = await openClient(socks5, { server: "127.0.0.1", port: socksPort, udp: true });
  const open = (destination: Destination): Promise<Duplex> =>
    outbound.connect(destination, { signal: AbortSignal.timeout(STEP_TIMEOUT_MS), metadata: null });
  await step(() => warmUp(open));
  return {
    bulk: await step(async () => {
      const started = performance.now();
      await exchange(outbound, bulkBytes);
      return `${Math.round((2 * bulkBytes) / 1e3 / (performance.now() - started))} MB/s`;
    }),
    short: await step(() => shortOnes(open, connections)),
    "half-close": await step(() => halfClose(open)),
    late: await step(() => late(open)),
    udp: udp > 0 ? await step(() => datagrams(outbound, udp)) : "–",
  };
}

/** mihomo refuses what comes while it is still starting, with its port open. */
async function warmUp(open: (to: Destination) => Promise<Duplex>): Promise<string> {
  for (let tries = 0; tries < 20; tries++)
    try {
      await shortOnes(open, 1);
      return "yes";
    } catch {
      await delay(100);
    }
  return "no";
}

async function step(work: () => Promise<string>): Promise<string> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("took too long")), STEP_TIMEOUT_MS);
  try {
    return await Promise.race([work(), late.promise]);
  } catch (error) {
    return `FAIL ${(error as Error).message.replaceAll(/\s+/g, " ")}`;
  } finally {
    clearTimeout(timer);
  }
}

async function shortOnes(open: (to: Destination) => Promise<Duplex>, total: number): Promise<string> {
  await using origin = await openTcpOrigin(echo);
  const started = performance.now();
  let left = total;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const stream = await open(origin.destination);
      const sent = randomBytes(200);
      let got = Buffer.alloc(0);
      stream.on("error", () => {});
      stream.on("data", (data: Buffer) => {
        got = Buffer.concat([got, data]);
        if (got.length >= sent.length) stream.destroy();
      });
      stream.on("end", () => stream.destroy());
      stream.write(sent);
      if (!stream.destroyed) await once(stream, "close");
      if (!got.equals(sent)) throw new Error(`${got.length} of ${sent.length} bytes came back`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return `${Math.round(total / ((performance.now() - started) / 1e3))}/s`;
}

async function halfClose(open: (to: Destination) => Promise<Duplex>): Promise<string> {
  await using origin = await openTcpOrigin(countThenAnswer);
  const stream = await open(origin.destination);
  let answer = "";
  stream.on("error", () => {});
  stream.on("data", (data: Buffer) => (answer += data));
  stream.on("end", () => stream.destroy());
  stream.end(Buffer.alloc(12_345));
  await closed(stream);
  return answer === "12345" ? "yes" : "no";
}

/** The server speaks first, and the client takes its time. */
async function late(open: (to: Destination) => Promise<Duplex>): Promise<string> {
  const [greeting, word] = ["220 ready", "HELO"];
  await using origin = await openTcpOrigin((socket) => {
    socket.write(greeting);
    echo(socket);
  });
  const stream = await open(origin.destination);
  let received = "";
  stream.on("error", () => {});
  stream.on("data", (data: Buffer) => {
    received += data;
    if (received === greeting) setTimeout(() => stream.write(word), LATE_MS);
    if (received === greeting + word) stream.destroy();
  });
  stream.on("end", () => stream.destroy());
  await closed(stream);
  if (received !== greeting + word) throw new Error(received === "" ? "no greeting" : "no answer");
  return "yes";
}

/** Waits for it, or for silence. */
async function closed(stream: Duplex): Promise<void> {
  const silence = setTimeout(() => stream.destroy(), 8_000);
  if (!stream.destroyed) await new Promise((resolve) => stream.once("close", resolve));
  clearTimeout(silence);
}

async function datagrams(outbound: Outbound, destinations: number): Promise<string> {
  await using first = await openUdpEcho();
  await using second = await openUdpEcho();
  const context = { signal: AbortSignal.timeout(10_000), metadata: null };
  await using flow = await outbound.associate(first.destination, context);
  const box = inbox(flow);
  for (const { destination } of [first, second, first].slice(0, destinations === 1 ? 1 : 3))
    for (const size of DATAGRAM_SIZES) {
      const payload = randomBytes(size);
      flow.send({ payload, destination });
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => late.reject(new Error(`no answer to ${size} bytes`)), 5_000);
      const answer = await Promise.race([box.next(), late.promise]).finally(() => clearTimeout(timer));
      if (!payload.equals(answer.payload)) throw new Error("changed on the way");
      if (answer.destination.port !== destination.port) throw new Error("an answer from another address");
    }
  return "yes";
}
