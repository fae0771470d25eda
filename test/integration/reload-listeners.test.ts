/** A listener that a reload leaves running dials by the new configuration: its names, and its families of addresses. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";

const UUID = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
/** No vless request: the listener leaves its sender to the fallback. */
const UNKNOWN_CLIENT = "GET / HTTP/1.1\r\n\r\n";

/** Says by which of its addresses it was reached. */
const openMirror = (ip: string) =>
  openTcpOrigin((socket) => void socket.end(`${socket.localAddress}`), ip as Ip);

/** The listener is the same in each text, so that a reload keeps it. */
const withListener = (dest: string, rest: string): string => `${rest}
listeners:
  - { name: kept, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [{ uuid: ${UUID} }], fallbacks: [{ dest: "${dest}" }] }
rules: ["MATCH,DIRECT"]
`;

/** The reply to an unauthenticated client; "" where the connection is closed without one. */
async function visit(port: number): Promise<string> {
  const visitor = connect({ port, host: "127.0.0.1" });
  const closed = Promise.withResolvers<void>();
  let received = "";
  visitor
    .on("error", () => {})
    .on("data", (chunk: Buffer) => (received += chunk.toString()))
    .on("close", () => closed.resolve());
  visitor.write(UNKNOWN_CLIENT);
  await closed.promise;
  return received;
}

const SECTIONS = {
  "the system": "",
  "the DNS engine": "dns: { enable: true, nameserver: [rcode://refused] }",
};

for (const [resolver, section] of Object.entries(SECTIONS))
  test(`names, by ${resolver}`, async () => {
    await using origin = await openMirror("0.0.0.0");
    const text = (ip: string): string =>
      withListener(`origin.test:${origin.port}`, `${section}\nhosts: { origin.test: ${ip} }`);
    await using core = await startCore(text("127.0.0.1"));
    const port = await core.port("kept");
    assert.equal(await visit(port), "127.0.0.1");
    await core.reload(text("127.0.0.2"));
    assert.equal(await visit(port), "127.0.0.2");
  });

test("families of addresses", async () => {
  await using origin = await openMirror("::1");
  const text = (ipv6: boolean): string => withListener(`[::1]:${origin.port}`, `ipv6: ${ipv6}`);
  await using core = await startCore(text(true));
  const port = await core.port("kept");
  assert.equal(await visit(port), "::1");
  await core.reload(text(false));
  assert.equal(await visit(port), "");
  await core.reload(text(true));
  assert.equal(await visit(port), "::1");
});
