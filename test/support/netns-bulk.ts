/**
 * Much data and many flows, with both ends' hashes: `node netns-bulk.ts serve` listens; `up|down <host> <MiB>` prints
 * `same` where both ends hashed the same bytes; `flows <host> <count>` makes that many short connections.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";

const SINK = 5001;
const SOURCE = 5002;
const MIB = 1 << 20;
const [what = "", host = "", amount = "1"] = process.argv.slice(2);

/** A different MiB for every number. */
function* blocks(count: number): Generator<Buffer> {
  const block = Buffer.alloc(MIB, createHash("sha512").update("weir").digest());
  for (let number = 0; number < count; number++) {
    for (let at = 0; at < MIB; at += 4096) block.writeUInt32BE((number * 256 + at / 4096) >>> 0, at);
    yield Buffer.from(block);
  }
}

async function send(socket: Socket, count: number): Promise<string> {
  const hash = createHash("sha256");
  for (const block of blocks(count)) {
    hash.update(block);
    if (!socket.write(block)) await once(socket, "drain");
  }
  return hash.digest("hex");
}

async function receive(socket: Socket): Promise<string> {
  const hash = createHash("sha256");
  socket.on("data", (chunk: Buffer) => hash.update(chunk));
  await once(socket, "end");
  return hash.digest("hex");
}

async function serve(): Promise<void> {
  const options = { allowHalfOpen: true };
  const sink = createServer(options, (socket) => {
    socket.on("error", () => {});
    void receive(socket).then((hash) => socket.end(hash));
  }).listen(SINK, "::");
  const source = createServer(options, (socket) => {
    socket.on("error", () => {});
    socket.once("data", (count: Buffer) => void send(socket, Number(String(count))).then(() => socket.end()));
  }).listen(SOURCE, "::");
  await Promise.all([once(sink, "listening"), once(source, "listening")]);
  console.log("ready");
}

async function up(): Promise<void> {
  const socket = connect({ port: SINK, host, allowHalfOpen: true });
  await once(socket, "connect");
  const mine = await send(socket, Number(amount));
  socket.end();
  const theirs = String((await once(socket, "data"))[0]);
  console.log(mine === theirs ? "same" : `${mine} became ${theirs}`);
  socket.destroy();
}

async function down(): Promise<void> {
  const socket = connect({ port: SOURCE, host, allowHalfOpen: true });
  await once(socket, "connect");
  socket.write(amount);
  const got = await receive(socket);
  socket.end();
  const hash = createHash("sha256");
  for (const block of blocks(Number(amount))) hash.update(block);
  console.log(got === hash.digest("hex") ? "same" : "other bytes");
}

const AT_ONCE = 64;
const PORTS = 200;

/** Each says its own addresses; the answer is `ok` where the far side was told the same. */
async function flows(): Promise<void> {
  let next = 0;
  let good = 0;
  const failures = new Map<string, number>();
  const one = async (number: number): Promise<void> => {
    const port = 20_000 + (number % PORTS);
    const socket = connect({ port, host });
    try {
      await once(socket, "connect");
      socket.write(`${socket.localPort} ${port}\n`);
      const [answer] = await once(socket, "data", { signal: AbortSignal.timeout(20_000) });
      if (String(answer) !== "ok\n") throw new Error(String(answer));
      good++;
    } catch (error) {
      const text = (error as NodeJS.ErrnoException).code ?? String(error);
      failures.set(text, (failures.get(text) ?? 0) + 1);
    } finally {
      socket.destroy();
    }
  };
  const lane = async (): Promise<void> => {
    while (next < Number(amount)) await one(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  console.log(`${good} good${[...failures].map(([text, count]) => `, ${count} ${text}`).join("")}`);
}

/** Keeps a connection per line of input, and says `ok` while each still answers. */
async function keep(): Promise<void> {
  const sockets = Array.from({ length: Number(amount) }, (_, at) => connect({ port: 20_000 + at, host }));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  console.log("ready");
  for await (const line of createInterface(process.stdin)) {
    const answers = sockets.map(async (socket, at) => {
      socket.write(`${socket.localPort} ${20_000 + at} ${line}\n`);
      return String((await once(socket, "data", { signal: AbortSignal.timeout(5_000) }))[0]);
    });
    console.log((await Promise.all(answers)).every((text) => text === "ok\n") ? "ok" : "lost");
  }
  for (const socket of sockets) socket.destroy();
}

const commands: Readonly<Record<string, () => Promise<void>>> = { serve, up, down, flows, keep };
await commands[what]?.();
