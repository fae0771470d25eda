/** What is cut off must be gone: a descriptor without an owner is a leak. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { abortStream } from "#core/stream.ts";

const tcpHandles = () => process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;

/** When the abort comes after the end: the kernel handle notices the end at some point between these. */
const moments: readonly (() => Promise<void> | void)[] = [
  () => {},
  () => Promise.resolve(),
  () => new Promise((resolve) => process.nextTick(resolve)),
  () => turn(),
];

test("a socket that is aborted while its end is on the way is closed", async () => {
  const accepted: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {}).pause(); // never reads
    accepted.push(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (const moment of moments)
    for (const bytes of [0, 1, 16 << 20]) {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => {});
      await once(socket, "connect");
      const closed = once(socket, "close");
      socket.end(Buffer.alloc(bytes));
      await moment();
      abortStream(socket);
      await closed;
    }
  for (const socket of accepted) socket.destroy();
  server.close();
  await once(server, "close");
  for (let at = 0; at < 100 && tcpHandles() > 0; at++) await turn();
  assert.equal(tcpHandles(), 0);
});
