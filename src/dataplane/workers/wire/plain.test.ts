import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { LOOPBACK_V4, bytesOfIp } from "#net/address/ip.ts";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { openLibc } from "#platform/linux/libc.ts";
import { encodeSockaddr } from "#platform/linux/sockaddr.ts";
import type { TaskIo } from "#dataplane/workers/worker/task.ts";
import { PlainWire } from "./plain.ts";

const [calls, libc] = [openAcceptCalls(), openLibc()];
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;

/** A socket as a thread dials one. */
async function dialled(use: (fd: number, io: TaskIo, isPrompt: () => boolean) => void): Promise<void> {
  if (calls === null || libc === null) return;
  await using server = createServer((socket) => void socket.resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const fd = calls.open(4);
  calls.connect(fd, encodeSockaddr(calls.address, { address: bytesOfIp(LOOPBACK_V4), port }));
  const [socket] = (await once(server, "connection")) as [AsyncDisposable & { destroy(): void }];
  const value = new Int32Array(1);
  const isPrompt = (): boolean => {
    libc.getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, new Uint8Array(value.buffer));
    return value[0] !== 0;
  };
  try {
    use(fd, { calls } as unknown as TaskIo, isPrompt);
  } finally {
    calls.close(fd);
    socket.destroy();
  }
}

const skip = calls === null ? "SKIP sockets of a thread: need Linux and FFI" : false;

test("no piece but the first is ever held back for an acknowledgement", { skip }, () =>
  dialled((fd, io, isPrompt) => {
    const port = new PlainWire(fd);
    assert.equal(port.write(io, 1), 1);
    assert.equal(isPrompt(), false);
    assert.equal(port.write(io, 1), 1);
    assert.equal(isPrompt(), true);
  }),
);

test("nor one that goes past the port", { skip }, () =>
  dialled((fd, io, isPrompt) => {
    new PlainWire(fd).onBulk(io);
    assert.equal(isPrompt(), true);
  }),
);
