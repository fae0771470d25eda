/** Clients of HTTP/2 without credentials that ask for more streams than there may be, with heads that grow on the way. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection } from "#transport/http2/hpack.ts";
import { serveHttp2 } from "#transport/http2/server.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const CLIENTS = 12;
const STREAMS = 2400;
const VALUE_BYTES = 3900;
const CARRIERS = { grpcServiceName: "Gun", h2: null, streamOne: null, xhttp: null };
const REQUEST = encodeSection(
  [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "a"],
    [":path", "/Gun/Tun"],
    ["content-type", "application/grpc"],
    ["referer", "X".repeat(100)],
  ],
  false,
);
/** `a: xx…`, which goes to the table, and the same three times by its place in it (RFC 7541 §6.1, §6.2.1). */
const LONG = Buffer.concat([Buffer.of(0x40, 1, 0x61, 0x7f, 0xbd, 0x1d), Buffer.alloc(VALUE_BYTES, "x")]);
const AGAIN = Buffer.alloc(3, 0x80 | 62);

const head = (nth: number, more: Uint8Array): Buffer =>
  http2.encodeFrame(http2.HEADERS, http2.END_HEADERS, 1 + 2 * nth, Buffer.concat([REQUEST, more]));
const FLOOD = Buffer.concat([
  http2.CLIENT_PREFACE,
  http2.encodeSettings([]),
  head(0, LONG),
  ...Array.from({ length: STREAMS }, (_, at) => head(at + 1, AGAIN)),
]);

/** With which codes its streams are reset until its connection is. */
async function flood(port: number): Promise<ReadonlySet<number>> {
  const client = connect({ port, host: "127.0.0.1" });
  const got: Buffer[] = [];
  client.on("error", () => {}).on("data", (bytes: Buffer) => got.push(bytes));
  client.write(FLOOD);
  await new Promise((resolve) => client.once("close", resolve));
  const codes = new Set<number>();
  for (let left = Buffer.concat(got); left.length >= http2.HEAD_BYTES + 4;) {
    if (left.readUInt8(3) === http2.RST_STREAM) codes.add(left.readUInt32BE(http2.HEAD_BYTES));
    left = left.subarray(http2.HEAD_BYTES + left.readUIntBE(0, 3));
  }
  return codes;
}

test("streams beyond the bound are refused by the protocol, and end their own connection alone", async (context) => {
  await using server = createServer({ allowHalfOpen: true }, (wire) => {
    wire.on("error", () => {});
    serveHttp2(wire, CARRIERS, (tunnel) => tunnel.on("error", () => {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const collecting = setInterval(collect, 100); // a session that fails a check of the runtime's would end this process
  context.after(() => clearInterval(collecting));
  const codes = await Promise.all(Array.from({ length: CLIENTS }, () => flood(port)));
  const refusedByRuntime = 11; // ENHANCE_YOUR_CALM
  assert.ok(!codes.some((one) => one.has(refusedByRuntime)), "the runtime has refused streams by itself");
});
