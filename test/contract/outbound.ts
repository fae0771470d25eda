/**
 * What every outbound must do, run against a real origin on loopback:
 *
 *     outboundContract("socks5", async () => ({ outbound, [Symbol.asyncDispose]: … }), { udp: true });
 *
 * `setup` starts the outbound and, where it needs one, its server. A point that an outbound cannot meet is named in
 * `skip` with the reason, and the reason is printed.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, test } from "node:test";
import type { Duplex } from "node:stream";
import type { Outbound } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { inbox, outcome, readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import {
  countThenAnswer,
  echo,
  endThenListen,
  openTcpOrigin,
  openUdpEcho,
  reset,
  source,
  untilHeldUp,
} from "../support/origin.ts";

export interface OutboundUnderTest extends AsyncDisposable {
  readonly outbound: Outbound;
}

export type Point =
  | "echo"
  | "concurrent"
  | "client half-close"
  | "origin half-close"
  | "slow reader"
  | "abort"
  | "reset"
  | "refused"
  | "udp echo"
  | "udp close";

export interface ContractOptions {
  readonly udp: boolean;
  readonly skip?: Partial<Readonly<Record<Point, string>>>;
  /** What may lie between origin and a reader that does not read, kernel and proxies included. */
  readonly boundBytes?: number;
}

/** Far more than the kernel keeps for a pair of sockets. */
const BULK_BYTES = 32 << 20;
const never = (): AbortSignal => new AbortController().signal;

export function outboundContract(
  name: string,
  setup: () => Promise<OutboundUnderTest>,
  { udp, skip = {}, boundBytes = 16 << 20 }: ContractOptions,
): void {
  const point = (title: Point, body: (outbound: Outbound) => Promise<void>): void => {
    const reason = skip[title];
    test(title, { timeout: 30_000, ...(reason === undefined ? {} : { skip: reason }) }, async () => {
      const noLeaks = watchLeaks();
      {
        await using subject = await setup();
        await body(subject.outbound);
      }
      await noLeaks();
    });
  };
  const dial = (outbound: Outbound, to: Destination): Promise<Duplex> =>
    outbound.connect(to, { signal: never(), metadata: null });

  describe(`outbound contract: ${name}`, () => {
    point("echo", async (outbound) => {
      await using origin = await openTcpOrigin(echo);
      const stream = await dial(outbound, origin.destination);
      const sent = randomBytes(100_000);
      stream.end(sent);
      assert.deepEqual(await readAll(stream), sent);
      stream.destroy();
    });

    point("concurrent", async (outbound) => {
      await using origin = await openTcpOrigin(echo);
      const one = async (): Promise<void> => {
        const sent = randomBytes(5_000);
        const stream = await dial(outbound, origin.destination);
        stream.end(sent);
        assert.deepEqual(await readAll(stream), sent);
        stream.destroy();
      };
      await Promise.all(Array.from({ length: 20 }, one));
    });

    point("client half-close", async (outbound) => {
      await using origin = await openTcpOrigin(countThenAnswer);
      const stream = await dial(outbound, origin.destination);
      stream.end(Buffer.alloc(12_345));
      assert.equal((await readAll(stream)).toString(), "12345");
      stream.destroy();
    });

    point("origin half-close", async (outbound) => {
      const { promise: received, resolve } = Promise.withResolvers<Buffer>();
      await using origin = await openTcpOrigin(endThenListen(resolve));
      const stream = await dial(outbound, origin.destination);
      assert.equal((await readAll(stream)).toString(), "bye");
      stream.end("still here");
      assert.equal((await received).toString(), "still here");
      stream.destroy();
    });

    point("slow reader", async (outbound) => {
      const { on, sent } = source(BULK_BYTES);
      await using origin = await openTcpOrigin(on);
      const stream = await dial(outbound, origin.destination);
      stream.pause();
      await untilHeldUp(sent);
      assert.ok(sent() < boundBytes, `${sent()} bytes went out to a peer that does not read`);
      let received = 0;
      stream.on("data", (chunk: Buffer) => (received += chunk.length));
      stream.resume();
      await once(stream, "end");
      assert.equal(received, BULK_BYTES);
      stream.destroy();
    });

    point("abort", async (outbound) => {
      await using origin = await openTcpOrigin(echo);
      const abort = new AbortController();
      const dialling = outbound.connect(origin.destination, { signal: abort.signal, metadata: null });
      abort.abort();
      await assert.rejects(dialling, { name: "DialError", reason: "aborted" });
      const early = outbound.connect(origin.destination, { signal: abort.signal, metadata: null });
      await assert.rejects(early, { name: "DialError", reason: "aborted" });
    });

    point("reset", async (outbound) => {
      await using origin = await openTcpOrigin(reset);
      const stream = await dial(outbound, origin.destination);
      const ended = outcome(stream);
      stream.on("data", () => assert.fail("there is nothing to read"));
      stream.once("end", () => stream.destroy());
      stream.write("x");
      await ended; // an error or an end, but no hang, and the process lives
      stream.destroy();
    });

    point("refused", async (outbound) => {
      const origin = await openTcpOrigin(echo);
      await origin[Symbol.asyncDispose](); // its port is free now
      try {
        const stream = await dial(outbound, origin.destination);
        // A proxy that answers before it has dialled can only hang up.
        const ended = outcome(stream);
        stream.once("end", () => stream.destroy());
        stream.resume();
        await ended;
      } catch (error) {
        assert.equal((error as Error).name, "DialError");
      }
    });

    if (!udp) return;

    point("udp echo", async (outbound) => {
      await using first = await openUdpEcho();
      await using second = await openUdpEcho();
      const context = { signal: never(), metadata: null };
      await using flow = await outbound.associate(first.destination, context);
      const box = inbox(flow);
      for (const { destination } of [first, second, first]) {
        const payload = randomBytes(1_200);
        const lent = Buffer.from(payload);
        flow.send({ payload: lent, destination });
        lent.fill(0); // its owner's again: the receiver may not have kept it
        const reply = await box.next();
        assert.deepEqual(Buffer.from(reply.payload), payload);
        assert.equal(reply.destination.ip, destination.ip);
        assert.equal(reply.destination.port, destination.port);
      }
    });

    point("udp close", async (outbound) => {
      await using origin = await openUdpEcho();
      const flow = await outbound.associate(origin.destination, { signal: never(), metadata: null });
      flow.receive(() => {});
      flow.send({ payload: Buffer.from("x"), destination: origin.destination });
      await flow[Symbol.asyncDispose]();
      await flow.closed;
      flow.send({ payload: Buffer.from("late"), destination: origin.destination }); // must not throw
      await flow[Symbol.asyncDispose]();
    });
  });
}
