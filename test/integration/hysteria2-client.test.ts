/** The client of hysteria2 on real sockets: how connections and streams end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { Outbound } from "#core/outbound.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { toDestination } from "#net/address/ip.ts";
import { hysteria2 } from "#protocols/hysteria2/index.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { openHysteria2Server } from "../support/hysteria2-server.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { openTestOutbound } from "../support/inbound-env.ts";

import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const OK = Buffer.from("00026f6b00", "hex");
const REFUSED = Buffer.from("01026e6f00", "hex");
const TO = toDestination("origin.test", 80);
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });

const openNode = (port: number): Promise<Outbound> =>
  openTestOutbound(
    hysteria2,
    { server: "127.0.0.1", port, password: "letmein", "skip-cert-verify": true },
    openDirectDialer({ resolver: literalsOnly }),
  );

describe("the client of hysteria2", { skip: SKIP }, () => {
  test("the end of a node is sent to the server before the node has closed", async () => {
    await using server = await openHysteria2Server(OK);
    const node = await openNode(server.port);
    const stream = await node.connect(TO, context());
    stream.resume();
    stream.end("x");
    await once(stream, "close");
    await node[Symbol.asyncDispose]();
    await until("the end at the server", () => server.ends.length === 1);
    const [end] = server.ends;
    assert.ok(end instanceof PeerClosed, String(end));
    assert.deepEqual([end.isApplication, end.closeCode], [true, 0x100]);
  });

  test("a connection that is open outlives its node", async () => {
    await using server = await openHysteria2Server(Buffer.concat([OK, Buffer.from("abc")]));
    const node = await openNode(server.port);
    const stream = await node.connect(TO, context());
    stream.write("x");
    await node[Symbol.asyncDispose]();
    const [data] = await once(stream, "data");
    assert.deepEqual([String(data), server.ends.length], ["abc", 0]);
    stream.end();
    await until("the end at the server", () => server.ends.length === 1);
    assert.ok(server.ends[0] instanceof PeerClosed);
  });

  test("the error of a stream names the node and what the server says", async () => {
    await using server = await openHysteria2Server(REFUSED);
    await using node = await openNode(server.port);
    const stream = await node.connect(TO, context());
    stream.resume();
    const [error] = await once(stream, "error");
    assert.ok(error instanceof DialError, String(error));
    assert.match(error.message, /test-out: the server answers: no/);
  });
});
