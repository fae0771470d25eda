/** The frames of an AnyTLS session in a test's own hands, from either side. */
import { EventEmitter, on } from "node:events";
import type { TLSSocket } from "node:tls";
import * as wire from "#protocols/anytls/wire.ts";
import { ByteQueue } from "#lib/byte-queue.ts";

export interface Frames {
  readonly socket: TLSSocket;
  send(...frames: Buffer[]): void;
  /** The next frame that is neither data nor waste. */
  next(): Promise<wire.Frame>;
  /** The same where it must be this one. */
  expect(command: number, id: number): Promise<void>;
  /** Of all data frames of a stream so far. */
  got(id: number): Buffer;
  /** Waits until so much has come for a stream. */
  untilGot(id: number, sizeBytes: number): Promise<Buffer>;
}

/** `hasPreamble`: of a client, in front of its frames. */
export function framesOver(socket: TLSSocket, hasPreamble = false): Frames {
  const arrivals = new EventEmitter();
  const arrived = new ByteQueue();
  const data = new Map<number, Buffer[]>();
  const others: wire.Frame[] = [];
  let isFramed = !hasPreamble;
  const take = (frame: wire.Frame): void => {
    if (frame.command === wire.PSH)
      data.set(frame.streamId, [...(data.get(frame.streamId) ?? []), frame.data]);
    else if (frame.command !== wire.WASTE) others.push(frame);
  };
  socket.on("data", (bytes: Buffer) => {
    arrived.push(bytes);
    isFramed ||= skipPreamble(arrived);
    if (isFramed)
      for (let frame = wire.takeFrame(arrived); frame !== null; frame = wire.takeFrame(arrived)) take(frame);
    arrivals.emit("bytes");
  });
  socket.once("close", () => arrivals.emit("close"));
  const until = async <T>(look: () => T | undefined): Promise<T> => {
    const found = look();
    if (found !== undefined) return found;
    for await (const _ of on(arrivals, "bytes", { close: ["close"] })) {
      const later = look();
      if (later !== undefined) return later;
    }
    throw new Error("the session ended");
  };
  const got = (id: number): Buffer => Buffer.concat(data.get(id) ?? []);
  const sizeOf = (id: number): number => (data.get(id) ?? []).reduce((sum, one) => sum + one.length, 0);
  const frames: Frames = {
    socket,
    send: (...parts) => void socket.write(Buffer.concat(parts)),
    next: () => until(() => others.shift()),
    async expect(command, id) {
      const frame = await frames.next();
      if (frame.command !== command || frame.streamId !== id)
        throw new Error(`command ${frame.command} of stream ${frame.streamId} came, not ${command} of ${id}`);
    },
    got,
    untilGot: (id, sizeBytes) => until(() => (sizeOf(id) >= sizeBytes ? got(id) : undefined)),
  };
  return frames;
}

/** False: it has not come whole. */
function skipPreamble(arrived: ByteQueue): boolean {
  const head = arrived.peek(wire.HASH_BYTES + 2);
  return head !== null && arrived.take(head.length + head.readUInt16BE(wire.HASH_BYTES)) !== null;
}
