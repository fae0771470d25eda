/** The frames of smux and yamux, from either side, in a test's own hands. */
import { EventEmitter, on } from "node:events";
import type { Socket } from "node:net";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { takePreface } from "#transport/mux/preface.ts";
import * as smux from "#transport/mux/smux-frame.ts";
import * as yamux from "#transport/mux/yamux-frame.ts";

/** What a header says; `bytes` of data follow it. */
interface Head {
  readonly said: "open" | "data" | "end" | "reset" | "credit" | "ping" | "away" | "other";
  readonly id: number;
  readonly bytes: number;
  /** Of credit, a ping, or that the peer goes away. */
  readonly value: number;
}

export interface MuxTongue {
  readonly headBytes: number;
  /** Of the first streams. */
  readonly ids: readonly number[];
  parse(head: Buffer): Head;
  open(id: number): Buffer;
  /** Nothing more is wanted of it. */
  leave(id: number): Buffer;
  head(id: number, bytes: number): Buffer;
  end(id: number): Buffer;
}

const SMUX: Partial<Record<number, Head["said"]>> = {
  [smux.SYN]: "open",
  [smux.PSH]: "data",
  [smux.FIN]: "end",
};

function saidOf(type: number, flags: number): Head["said"] {
  if (type === yamux.PING) return "ping";
  if (type === yamux.GO_AWAY) return "away";
  if ((flags & yamux.RST) !== 0) return "reset";
  if (type === yamux.DATA) return "data";
  if ((flags & yamux.SYN) !== 0) return "open";
  return (flags & yamux.FIN) === 0 ? "credit" : "end";
}

export const TONGUES: Readonly<Record<"smux" | "yamux", MuxTongue>> = {
  smux: {
    headBytes: smux.HEAD_BYTES,
    ids: [3, 5, 7],
    parse: (head) => {
      const [said = "other", bytes] = [SMUX[head.readUInt8(1)], head.readUInt16LE(2)];
      return { said, id: head.readUInt32LE(4), bytes, value: 0 };
    },
    open: (id) => smux.encodeHead(smux.SYN, id, 0),
    leave: (id) => smux.encodeHead(smux.FIN, id, 0),
    head: (id, bytes) => smux.encodeHead(smux.PSH, id, bytes),
    end: (id) => smux.encodeHead(smux.FIN, id, 0),
  },
  yamux: {
    headBytes: yamux.HEAD_BYTES,
    ids: [1, 3, 5],
    parse: (head) => {
      const [type, value] = [head.readUInt8(1), head.readUInt32BE(8)];
      const said = saidOf(type, head.readUInt16BE(2));
      return { said, id: head.readUInt32BE(4), bytes: type === yamux.DATA ? value : 0, value };
    },
    open: (id) => yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.SYN, id, 0),
    leave: (id) => yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.RST, id, 0),
    head: (id, bytes) => yamux.encodeHead(yamux.DATA, 0, id, bytes),
    end: (id) => yamux.encodeHead(yamux.WINDOW_UPDATE, yamux.FIN, id, 0),
  },
};

/** A session, at one of its ends. */
export interface MuxFrames {
  readonly socket: Socket;
  send(...frames: readonly Uint8Array[]): void;
  /** As data of the stream, in frames of at most so many bytes. */
  sendData(id: number, bytes: Uint8Array, frameBytes?: number): void;
  end(id: number): void;
  /** Waits for what is not data, such as "end 3"; "away" and "ping" with their value. Each is found once. */
  expect(said: string): Promise<void>;
  /** Of credit for the stream, so far. */
  credit(id: number): number;
  /** Of all its data so far. */
  size(id: number): number;
  /** The first bytes of the stream, once so much has come. */
  got(id: number, sizeBytes: number): Promise<Buffer>;
}

/** `arrived` holds what has come behind the request for the session; `hasPreface`: the peer says none, or has said it. */
export function muxFramesOver(
  socket: Socket,
  arrived: ByteQueue,
  tongue: MuxTongue,
  hasPreface = false,
): MuxFrames {
  const arrivals = new EventEmitter();
  const data = new Map<number, Buffer[]>();
  const credit = new Map<number, number>();
  const others: string[] = [];
  let body: { readonly id: number; left: number } | null = null;
  const onHead = ({ said, id, bytes, value }: Head): void => {
    if (said === "data") body = { id, left: bytes };
    else if (said === "credit") credit.set(id, (credit.get(id) ?? 0) + value);
    else others.push(said === "away" || said === "ping" ? `${said} ${value}` : `${said} ${id}`);
  };
  const takeNext = (): boolean => {
    if (body !== null && body.left > 0) {
      const some = arrived.takeSome(body.left);
      body.left -= some.length;
      const pieces = data.get(body.id) ?? [];
      data.set(body.id, pieces);
      pieces.push(Buffer.from(some));
      return some.length > 0;
    }
    const head = arrived.take(tongue.headBytes);
    if (head !== null) onHead(tongue.parse(head));
    return head !== null;
  };
  const takeAll = (): void => {
    hasPreface ||= takePreface(arrived) !== null;
    while (hasPreface && takeNext());
    arrivals.emit("bytes");
  };
  socket.on("data", (bytes: Buffer) => {
    arrived.push(bytes);
    takeAll();
  });
  socket.once("close", () => arrivals.emit("close"));
  const until = async <T>(look: () => T | undefined): Promise<T> => {
    const found = look();
    if (found !== undefined) return found;
    for await (const _ of on(arrivals, "bytes", { close: ["close"] })) {
      const later = look();
      if (later !== undefined) return later;
    }
    throw new Error(`the session ended; it said ${others.join(", ")}`);
  };
  const size = (id: number): number => (data.get(id) ?? []).reduce((sum, one) => sum + one.length, 0);
  const send = (...frames: readonly Uint8Array[]): void => void socket.write(Buffer.concat(frames));
  takeAll();
  return {
    socket,
    send,
    sendData(id, bytes, frameBytes = 32_000) {
      for (let from = 0; from < bytes.length; from += frameBytes) {
        const piece = bytes.subarray(from, from + frameBytes);
        send(tongue.head(id, piece.length), piece);
      }
    },
    end: (id) => send(tongue.end(id)),
    async expect(said) {
      await until(() => (others.includes(said) ? true : undefined));
      others.splice(others.indexOf(said), 1);
    },
    credit: (id) => credit.get(id) ?? 0,
    size,
    got: (id, sizeBytes) =>
      until(() => (size(id) >= sizeBytes ? Buffer.concat(data.get(id) ?? []) : undefined)),
  };
}
