/** Long transfers in both directions whose every byte is checked, for tests that do something else meanwhile. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

const CHUNK_BYTES = 1024;
const PERIOD_MS = 50;

/** Byte `at` of a stream; the same on both sides, so that a lost, doubled or moved byte shows. */
function patternByte(at: number): number {
  return (at * 31 + (at >>> 8) * 17 + (at >>> 16)) & 0xff;
}

class PatternWriter {
  #at = 0;
  next(): Buffer {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let i = 0; i < CHUNK_BYTES; i++) chunk[i] = patternByte(this.#at++);
    return chunk;
  }
  get sent(): number {
    return this.#at;
  }
}

class PatternReader {
  received = 0;
  intact = true;
  take(chunk: Uint8Array): void {
    for (const byte of chunk) if (byte !== patternByte(this.received++)) this.intact = false;
  }
}

/** Writes the pattern a chunk a period until `finish` is called, then ends its direction. */
function writeSteadily(socket: Socket, writer: PatternWriter): () => void {
  const timer = setInterval(() => {
    if (socket.writableLength < 4 * CHUNK_BYTES) socket.write(writer.next());
  }, PERIOD_MS);
  socket.once("close", () => clearInterval(timer));
  return () => {
    clearInterval(timer);
    socket.end();
  };
}

/** An origin that talks and listens at the same time. */
export class SteadyOrigin implements AsyncDisposable {
  readonly #server: Server;
  readonly #finishers = new Set<() => void>();
  /** Per finished connection: how many bytes arrived whole. */
  readonly uploads: { received: number; intact: boolean }[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => this.#serve(socket));
  }

  static async open(): Promise<SteadyOrigin> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new SteadyOrigin(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Every connection ends its direction after the chunk under way. */
  finish(): void {
    for (const finish of this.#finishers) finish();
  }

  /** Settles when every connection that came has closed at this end, too. */
  async idle(): Promise<void> {
    while (this.#finishers.size > 0) await once(this.#server, "idle");
  }

  #serve(socket: Socket): void {
    const reader = new PatternReader();
    const finish = writeSteadily(socket, new PatternWriter());
    this.#finishers.add(finish);
    socket.on("end", finish); // a transfer that its client ends is over before the others
    socket.on("data", (chunk: Buffer) => reader.take(chunk));
    socket.on("error", () => (reader.intact = false));
    socket.on("close", () => {
      this.#finishers.delete(finish);
      this.uploads.push({ received: reader.received, intact: reader.intact });
      this.#server.emit("idle");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const finish of this.#finishers) finish();
    this.#server.close();
    await once(this.#server, "close");
  }
}

export interface SteadyTransfer {
  /** Ends the upload and waits for the download's end. */
  finish(): Promise<{ readonly received: number; readonly sent: number; readonly intact: boolean }>;
  /** What broke it, if something did. */
  readonly failure: Error | null;
}

/** A transfer through an HTTP proxy on loopback by CONNECT. */
export async function openSteadyTransfer(proxyPort: number, originPort: number): Promise<SteadyTransfer> {
  const socket = connect({ host: "127.0.0.1", port: proxyPort, allowHalfOpen: true });
  await once(socket, "connect");
  socket.write(`CONNECT 127.0.0.1:${originPort} HTTP/1.1\r\nHost: 127.0.0.1:${originPort}\r\n\r\n`);
  const reader = new PatternReader();
  const writer = new PatternWriter();
  let failure: Error | null = null;
  await skipHead(socket, (rest) => reader.take(rest));
  socket.on("data", (chunk: Buffer) => reader.take(chunk));
  socket.on("error", (error) => (failure = error));
  const ended = once(socket, "end").catch(() => undefined);
  const closed = once(socket, "close").catch(() => undefined);
  const stop = writeSteadily(socket, writer);
  return {
    get failure() {
      return failure;
    },
    async finish() {
      stop();
      await Promise.race([ended, closed]);
      await closed;
      return { received: reader.received, sent: writer.sent, intact: reader.intact && failure === null };
    },
  };
}

async function skipHead(socket: Socket, onRest: (rest: Buffer) => void): Promise<void> {
  let head = Buffer.alloc(0);
  for (;;) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) continue;
    if (!head.toString("latin1").startsWith("HTTP/1.1 200 "))
      throw new Error(`refused: ${head.toString("latin1")}`);
    onRest(head.subarray(end + 4));
    return;
  }
}
