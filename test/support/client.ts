/** Small things that a test does with a stream or a flow. */
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { keptDatagram } from "#core/kept-datagram.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";

/** Everything until the end; rejects on an error. */
export async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!stream.readableEnded) await once(stream, "end");
  return Buffer.concat(chunks);
}

/** Sends random bytes to an echo and waits for all of them, without a half-close, which not every peer keeps. */
export async function roundTrip(stream: Duplex, sizeBytes: number): Promise<void> {
  const sent = randomBytes(sizeBytes);
  let got = 0;
  stream.on("data", (bytes: Buffer) => {
    if (!bytes.equals(sent.subarray(got, got + bytes.length)))
      stream.destroy(new Error("changed on the way"));
    got += bytes.length;
    if (got === sizeBytes) stream.destroy();
  });
  stream.write(sent);
  await once(stream, "close");
  if (got !== sizeBytes) throw new Error(`${got} of ${sizeBytes} bytes came back`);
}

/** Sends random bytes to an echo and waits until as many have come back. The stream goes on, and still flows. */
export async function echoed(stream: Duplex, sizeBytes: number): Promise<void> {
  const { promise: isBack, resolve, reject } = Promise.withResolvers<void>();
  const sent = randomBytes(sizeBytes);
  let got = 0;
  const take = (bytes: Buffer): void => {
    if (!bytes.equals(sent.subarray(got, got + bytes.length))) reject(new Error("changed on the way"));
    got += bytes.length;
    if (got >= sizeBytes) resolve();
  };
  const onClose = (): void => reject(new Error(`closed after ${got} of ${sizeBytes} bytes`));
  stream.on("data", take).once("close", onClose);
  stream.write(sent);
  try {
    await isBack;
  } finally {
    stream.off("data", take).off("close", onClose);
  }
}

/** How the stream came to its end: its error's code, or `null` for a close without one. */
export function outcome(stream: Duplex): Promise<string | null> {
  return new Promise((resolve) => {
    stream.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    stream.once("close", () => resolve(null));
  });
}

/** Sends one datagram to a port of this machine and waits for what comes back to its sender. */
export async function datagramReply(port: number, payload: string | Uint8Array): Promise<Buffer> {
  const socket = createSocket("udp4");
  try {
    socket.send(payload, port, "127.0.0.1");
    const [reply] = (await once(socket, "message", { signal: AbortSignal.timeout(10_000) })) as [Buffer];
    return reply;
  } finally {
    socket.close();
  }
}

/** The same for a server that may not listen yet: asks again until there is an answer. */
export async function datagramReplyAtLast(port: number, payload: string): Promise<Buffer> {
  const socket = createSocket("udp4");
  const ask = (): void => socket.send(payload, port, "127.0.0.1");
  const again = setInterval(ask, 50);
  try {
    ask();
    const [reply] = (await once(socket, "message", { signal: AbortSignal.timeout(10_000) })) as [Buffer];
    return reply;
  } finally {
    clearInterval(again);
    socket.close();
  }
}

/** Collects what a flow receives; `next` waits for one more. To be made before anything can arrive. */
export function inbox(flow: DatagramFlow): { next(): Promise<Datagram> } {
  const items: Datagram[] = [];
  const waiting: ((item: Datagram) => void)[] = [];
  flow.receive((lent) => {
    const item = keptDatagram(lent);
    const first = waiting.shift();
    if (first === undefined) items.push(item);
    else first(item);
  });
  return {
    next: () =>
      new Promise((resolve) => {
        const item = items.shift();
        if (item === undefined) waiting.push(resolve);
        else resolve(item);
      }),
  };
}

/** Says it at once, and has an answer of so many bytes; less where it is over before. */
export async function answerTo(stream: Duplex, said: Buffer, size: number): Promise<string> {
  stream.write(said);
  let heard = "";
  while (heard.length < size) {
    const chunk = await new Promise<Buffer | null>((resolve) => {
      stream.once("data", resolve).once("close", () => resolve(null));
    });
    if (chunk === null) break;
    heard += chunk.toString("latin1");
  }
  return heard;
}
