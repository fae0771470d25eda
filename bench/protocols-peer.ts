/**
 * The two ends of a protocol measurement, in processes of their own. `sink` answers the first byte of a connection: D it
 * sends without end, T it sends what looks like TLS 1.3 without end, U it takes without end, S the same and says nothing,
 * E it sends the byte back.
 */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

export type Kind = "D" | "T" | "U" | "S";

/** `socksPort`: leads to `sinkPort` of the loopback by SOCKS5. */
export type ProtocolTask = { readonly socksPort: number; readonly sinkPort: number; readonly ms: number } & (
  | { readonly what: "bulk"; readonly kind: Kind; readonly streams: number }
  | { readonly what: "short"; readonly parallel: number }
);

export interface ProtocolResult {
  /** Bytes, or connections. */
  readonly amount: number;
  readonly seconds: number;
}

const HOST = "127.0.0.1";
const WARM_UP_MS = 300;
const BLOCK = Buffer.alloc(256 * 1024, "weir");

/** A record of application data: what follows a handshake of TLS 1.3. */
const RECORD = Buffer.concat([Buffer.from([0x17, 3, 3, 0x40, 0x11]), Buffer.alloc(0x4011, 7)]);
const RECORDS = Buffer.concat(Array.from({ length: 16 }, () => RECORD));
/** The first byte is the command that the sink looks for, so the hello comes behind it in the other direction only. */
const SERVER_HELLO = Buffer.concat([
  Buffer.from(
    "160303005a0200005603030000000000000000000000000000000000000000000000000000000000000000",
    "hex",
  ),
  Buffer.from(`20${"00".repeat(32)}130100000e002b0002030400330004001d0000`, "hex"),
]);

function endless(socket: Socket, block: Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on("drain", more);
  more();
}

function serve(socket: Socket): void {
  socket.on("error", () => {}); // the load may leave in the middle
  socket.once("data", (first: Buffer) => {
    const kind = String.fromCharCode(first[0] as number);
    if (kind === "D") endless(socket, BLOCK);
    else if (kind === "\x16") {
      socket.write(SERVER_HELLO);
      endless(socket, RECORDS);
    } else if (kind === "U" || kind === "S") {
      if (kind === "U") socket.write("U");
      socket.on("data", () => {});
    } else socket.end(first);
  });
}

/** The first record of a TLS 1.3 client, as far as middleboxes look at it. */
const CLIENT_HELLO = Buffer.concat([
  Buffer.from("16030100d0010000cc0303", "hex"),
  Buffer.alloc(32, 1),
  Buffer.from(`20${"02".repeat(32)}00021301`, "hex"),
  Buffer.alloc(0xd0 - 4 - 2 - 32 - 33 - 4, 0),
]);

/** What it says once the server has answered: a record that is encrypted, behind which its direction may leave TLS, too. */
const CLIENT_FINISHED = Buffer.concat([Buffer.from("1703030035", "hex"), Buffer.alloc(0x35, 3)]);

async function dial(socksPort: number, sinkPort: number, on: (bytes: number) => void): Promise<Socket> {
  const onread = { buffer: shared, callback: (bytes: number) => (received(bytes), true) };
  let received = (_bytes: number): void => {};
  const socket = connect({ port: socksPort, host: HOST, noDelay: true, allowHalfOpen: false, onread });
  socket.on("error", () => {});
  await once(socket, "connect");
  const answer = async (request: readonly number[], size: number): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let missing = size;
    received = (bytes) => {
      missing -= bytes;
      if (missing <= 0) resolve();
    };
    socket.once("close", () => reject(new Error("closed during the greeting")));
    socket.write(Buffer.from(request));
    await promise;
  };
  await answer([5, 1, 0], 2);
  await answer([5, 1, 0, 1, 127, 0, 0, 1, sinkPort >> 8, sinkPort & 255], 10);
  received = on;
  return socket;
}
const shared = Buffer.allocUnsafe(256 * 1024);

async function bulk(task: Extract<ProtocolTask, { what: "bulk" }>): Promise<ProtocolResult> {
  const { socksPort, sinkPort, kind, streams, ms } = task;
  let amount = 0;
  const sockets = await Promise.all(
    Array.from({ length: streams }, () => dial(socksPort, sinkPort, (bytes) => (amount += bytes))),
  );
  for (const socket of sockets) socket.write(kind === "T" ? CLIENT_HELLO : kind);
  if (kind === "T") {
    while (amount === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    for (const socket of sockets) socket.write(CLIENT_FINISHED);
  }
  const sends = kind === "U" || kind === "S";
  if (sends) for (const socket of sockets) endless(socket, BLOCK);
  const moved = (): number =>
    sends ? sockets.reduce((sum, one) => sum + one.bytesWritten - one.writableLength, 0) : amount;
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  const [before, startMs] = [moved(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, ms));
  const result = { amount: moved() - before, seconds: (performance.now() - startMs) / 1000 };
  for (const socket of sockets) socket.destroy();
  return result;
}

async function short(task: Extract<ProtocolTask, { what: "short" }>): Promise<ProtocolResult> {
  const { socksPort, sinkPort, parallel, ms } = task;
  const startMs = performance.now();
  let amount = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - startMs < ms) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const socket = await dial(socksPort, sinkPort, () => resolve());
      socket.once("close", () => resolve());
      socket.write("E");
      await promise;
      socket.destroy();
      amount++;
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return { amount, seconds: (performance.now() - startMs) / 1000 };
}

if (process.argv[2] === "sink") {
  const server = createServer({ noDelay: true, highWaterMark: 256 * 1024 }, serve);
  server.listen(0, HOST, () => process.send?.((server.address() as AddressInfo).port));
} else {
  process.on("message", (task: ProtocolTask) => {
    const work = task.what === "bulk" ? bulk(task) : short(task);
    work.then(
      (result) => process.send?.(result),
      (error: unknown) => process.send?.({ amount: 0, seconds: 1, error: String(error) }),
    );
  });
}
process.on("disconnect", () => process.exit());
