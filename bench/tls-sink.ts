/**
 * The far end of the TLS benchmark, plain. The first byte of a connection says what it is for: D it is sent `CONTENT`
 * without end, U it is taken from without end and without a look, C the same with each byte compared and a Y or N in the
 * end, E it is echoed.
 */
import { createServer, type AddressInfo } from "node:net";
import { writeSync } from "node:fs";
import { descriptorOf } from "#core/handover.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { openPoller, UV_READABLE, UV_WRITABLE, type Poller } from "#platform/linux/uv-poll.ts";
import { CHECKED_BYTES, CONTENT, isContent, openEndCalls } from "./tls-calls.ts";

const calls = openEndCalls();
const poller = openPoller() as Poller;
const file = calls.openFile();
writeSync(file, CONTENT);

type Work = (fd: number) => number;

/** Each does one step: a count, or an errno; 0: there is nothing more to do. */
const WORKS: Readonly<Record<string, () => Work>> = {
  D: () => {
    let at = 0;
    return (fd) => {
      const sent = calls.sendFile(fd, file, at, CONTENT.length - at);
      at = (at + Math.max(0, sent)) % CONTENT.length;
      return sent;
    };
  },
  U: () => (fd) => calls.swallow(fd),
  C: () => {
    let at = 0;
    let verdict = "Y";
    return (fd) => {
      const bytes = calls.receive(fd, Math.min(calls.buffer.length, CHECKED_BYTES - at));
      if (bytes <= 0) return bytes;
      if (!isContent(calls.buffer.subarray(0, bytes), at)) verdict = "N";
      at += bytes;
      return at < CHECKED_BYTES ? bytes : answer(fd, verdict);
    };
  },
  E: () => (fd) => {
    const bytes = calls.receive(fd, calls.buffer.length);
    return bytes > 0 ? calls.send(fd, bytes) : bytes;
  },
};

function answer(fd: number, text: string): number {
  calls.buffer.set(Buffer.from(text));
  return calls.send(fd, text.length);
}

function serve(fd: number): void {
  let work: Work | null = null;
  const watch = poller.watchReadiness(fd, () => {
    const bytes = work === null ? begin() : work(fd);
    if (bytes > 0 || bytes === EAGAIN || bytes === EINTR) return;
    watch.close();
    calls.close(fd);
  });
  const begin = (): number => {
    const bytes = calls.receive(fd, 1);
    if (bytes !== 1) return bytes;
    const kind = String.fromCharCode(calls.buffer[0] as number);
    work = WORKS[kind]?.() ?? null;
    if (kind === "D") watch.want(UV_WRITABLE);
    if (kind === "E") return answer(fd, kind);
    return work === null ? 0 : 1;
  };
  watch.want(UV_READABLE);
}

const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
  const fd = calls.duplicate(descriptorOf(socket));
  socket.destroy();
  if (fd >= 0) serve(fd);
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on("disconnect", () => process.exit(0));
