/** Runs in the client's namespace: `node netns-near.ts <what> <host> …` prints one line for each answer. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { decode, encode } from "dns-packet";

const [what, host = "", ...rest] = process.argv.slice(2);
const numbers = rest.map(Number);

/** Connected, so that a reply from any other address would not be seen. */
async function connectUdp(port: number): Promise<Socket> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.connect(port, host);
  await once(socket, "connect");
  return socket;
}

async function exchange(socket: Socket, payload: Uint8Array): Promise<Buffer> {
  socket.send(payload);
  const [answer] = (await once(socket, "message", { signal: AbortSignal.timeout(5_000) })) as [Buffer];
  return answer;
}

async function askUdp(port: number, payload: Uint8Array): Promise<Buffer> {
  const socket = await connectUdp(port);
  const answer = await exchange(socket, payload);
  socket.close();
  return answer;
}

/** Asks so often by one socket: a client has some hundreds of UDP flows at most. */
const ASKS = 50;

async function askOften(port: number, moved: { upload: number; download: number }): Promise<void> {
  const socket = await connectUdp(port);
  try {
    for (let at = 0; at < ASKS; at++) {
      const question = Buffer.from(`datagram ${at}`);
      const answer = await exchange(socket, question);
      moved.upload += question.length;
      moved.download += answer.length;
      if (String(answer) !== `${port}:datagram ${at}`) throw new Error(`${answer} in place of ${at}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    socket.close();
  }
}

/** Sends `bytes` and reads them back. */
async function echoTcp(port: number, bytes: number, seed: number): Promise<void> {
  const sent = Buffer.alloc(bytes, `connection ${seed} `);
  const socket = connect(port, host);
  const chunks: Buffer[] = [];
  socket.setTimeout(5_000, () => void socket.destroy(new Error(`connection ${seed} is silent`)));
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.end(sent);
  await once(socket, "end");
  if (!Buffer.concat(chunks).equals(sent)) throw new Error(`connection ${seed}: other bytes came back`);
}

const commands: Readonly<Record<string, () => Promise<void>>> = {
  /** udp host port bytes */
  async udp() {
    const [port = 0, bytes = 0] = numbers;
    const sent = Buffer.alloc(bytes, "weir");
    const answer = await askUdp(port, sent);
    const prefix = `${port}:`;
    const good = answer.equals(Buffer.concat([Buffer.from(prefix), sent]));
    console.log(good ? `echo of ${bytes}` : `other bytes: ${answer.length}`);
  },
  /** burst host port count: datagrams of 1,200 bytes at once and a short one; says whether all came back, in order. */
  async burst() {
    const [port = 0, count = 0] = numbers;
    const socket = createSocket({ type: host.includes(":") ? "udp6" : "udp4", recvBufferSize: 1 << 20 });
    const sent = Array.from({ length: count }, (_, at) => Buffer.alloc(at < count - 1 ? 1_200 : 9, at + 1));
    const got: Buffer[] = [];
    const { promise: all, resolve } = Promise.withResolvers<void>();
    socket.on("message", (bytes) => void (got.push(bytes) === count && resolve()));
    socket.connect(port, host);
    await once(socket, "connect");
    for (const payload of sent) socket.send(payload);
    await Promise.race([all, new Promise((late) => setTimeout(late, 5_000))]);
    const prefix = Buffer.from(`${port}:`);
    const good = sent.filter((bytes, at) => got[at]?.equals(Buffer.concat([prefix, bytes]))).length;
    console.log(`${good} of ${count} in order`);
    process.exit(0);
  },
  /** silence host port: says so where no answer comes. */
  async silence() {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    socket.on("message", () => console.log("an answer"));
    socket.send("anybody?", numbers[0] ?? 0, host);
    await new Promise((resolve) => setTimeout(resolve, 500));
    socket.close();
    console.log("silence");
  },
  /** refused host port: the error that a connected socket gets for its datagrams within a second. */
  async refused() {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const codes: string[] = [];
    const failed = (error: NodeJS.ErrnoException | null) => void (error && codes.push(String(error.code)));
    socket.on("error", failed);
    socket.on("message", () => codes.push("an answer"));
    socket.connect(numbers[0] ?? 0, host);
    await once(socket, "connect");
    for (const end = Date.now() + 1_000; codes.length === 0 && Date.now() < end;) {
      socket.send("anybody?", failed);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    socket.close();
    console.log(codes[0] ?? "silence");
  },
  /** cone host count port port: one socket, two destinations; prints how many answers came from each. */
  async cone() {
    const [count = 0, ...ports] = numbers;
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const seen = new Map(ports.map((port) => [port, 0]));
    const all = async (wanted: number): Promise<void> => {
      const signal = AbortSignal.timeout(5_000);
      while (![...seen.values()].every((got) => got >= wanted)) {
        const [, from] = (await once(socket, "message", { signal })) as [
          Buffer,
          { address: string; port: number },
        ];
        if (from.address === host) seen.set(from.port, (seen.get(from.port) ?? 0) + 1);
      }
    };
    for (const port of ports) socket.send("first", port, host);
    await all(1);
    for (let at = 1; at < count; at++) for (const port of ports) socket.send(`datagram ${at}`, port, host);
    await all(count).catch(() => {}); // the counts tell
    console.log([...seen].map(([port, got]) => `${port}:${got}`).join(" "));
    socket.close();
  },
  /** unknownClient host port: asks one port and prints which port answers. */
  async unknownClient() {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    socket.send("who?", numbers[0] ?? 0, host);
    const signal = AbortSignal.timeout(5_000);
    const [, from] = (await once(socket, "message", { signal })) as [
      Buffer,
      { address: string; port: number },
    ];
    console.log(`${from.address} ${from.port}`);
    socket.close();
  },
  /** dns host: one question to port 53; prints the answer. With a number the name is another one. */
  async dns() {
    const name = numbers[0] === undefined ? "www.origin.test" : `www.kind${numbers[0]}.test`;
    const question = { type: "A", name } as const;
    const { answers = [] } = decode(
      await askUdp(53, encode({ type: "query", id: 7, questions: [question] })),
    );
    console.log(answers.map((answer) => (answer.type === "A" ? answer.data : answer.type)).join());
  },
  /** dnstcp host: the same over TCP. */
  async dnstcp() {
    const question = encode({ type: "query", id: 7, questions: [{ type: "A", name: "www.origin.test" }] });
    const socket = connect(53, host);
    socket.write(Buffer.concat([Buffer.from([question.length >> 8, question.length & 0xff]), question]));
    let got = Buffer.alloc(0);
    for await (const chunk of socket) {
      got = Buffer.concat([got, chunk as Buffer]);
      if (got.length > 2 && got.length >= 2 + got.readUInt16BE(0)) break;
    }
    const { answers = [] } = decode(got.subarray(2));
    console.log(answers.map((answer) => (answer.type === "A" ? answer.data : answer.type)).join());
  },
  /** many host port count */
  async many() {
    const [port = 0, count = 0] = numbers;
    await Promise.all(Array.from({ length: count }, (_, seed) => echoTcp(port, 20_000, seed)));
    console.log(`${count} echoed`);
  },
  /** steady host port datagrams: connections, and datagrams unless that is 0, one after the other until its input ends, each lane two at least; says what failed. */
  async steady() {
    const [port = 0, datagrams = 1] = numbers;
    const counts = { tcp: 0, udp: 0 };
    const moved = { upload: 0, download: 0 };
    const faults: string[] = [];
    let ends = false;
    process.stdin.resume().once("end", () => (ends = true));
    const repeat = async (kind: keyof typeof counts, work: () => Promise<void>): Promise<void> => {
      for (let round = 0; !ends || round < 2; round++) {
        await work().catch((error: Error) =>
          faults.push(`${kind} until ${new Date().toISOString()}: ${error.message}`),
        );
        counts[kind]++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const lanes = Array.from({ length: 4 }, () => [
      repeat("tcp", async () => {
        await echoTcp(port, 5_000, counts.tcp);
        moved.upload += 5_000;
        moved.download += 5_000;
      }),
      ...(datagrams === 0 ? [] : [repeat("udp", () => askOften(port, moved))]),
    ]).flat();
    console.log("begun");
    await Promise.all(lanes);
    console.log(JSON.stringify({ ...counts, ...moved, faults }));
  },
  /** give-up host port count: connects, and resets at once or behind the first bytes. */
  async "give-up"() {
    const [port = 0, count = 0] = numbers;
    const one = async (seed: number): Promise<void> => {
      const socket = connect(port, host).on("error", () => {}); // a reset from the other end is as good
      await once(socket, "connect");
      if (seed % 2 === 1) socket.write("never mind");
      if (seed % 4 === 3) await new Promise<void>((resolve) => void socket.once("data", () => resolve()));
      socket.resetAndDestroy();
    };
    await Promise.all(Array.from({ length: count }, (_, seed) => one(seed)));
    console.log(`${count} given up`);
  },
  /** ends host port count: how many of so many connections end without an answer. */
  async ends() {
    const [port = 0, count = 0] = numbers;
    let ended = 0;
    const one = async (): Promise<void> => {
      const socket = connect(port, host).on("error", () => {});
      let answers = 0;
      socket.on("data", () => answers++);
      socket.write("anybody?");
      await new Promise((resolve) => socket.on("close", resolve));
      if (answers === 0) ended++;
    };
    await Promise.all(Array.from({ length: count }, one));
    console.log(`${ended} ended`);
  },
  /** Connects and says how that ended. */
  async end() {
    const socket = connect(numbers[0] ?? 0, host);
    socket.on("error", ({ code }: NodeJS.ErrnoException) => console.log(code));
    socket.on("end", () => console.log("end"));
    socket.resume();
    await new Promise((resolve) => socket.on("close", resolve));
  },
  /** hold host port: one TCP connection and one UDP socket; each line of input is sent by both. */
  async hold() {
    const [port = 0] = numbers;
    const tcp = connect(port, host);
    const udp = createSocket(host.includes(":") ? "udp6" : "udp4");
    udp.connect(port, host);
    await Promise.all([once(tcp, "connect"), once(udp, "connect")]);
    tcp.on("data", (data: Buffer) => console.log(`tcp ${data}`));
    tcp.on("error", ({ code }: NodeJS.ErrnoException) => console.log(`tcp ${code}`)); // the test is over
    udp.on("message", (data) => console.log(`udp ${data}`));
    udp.on("error", () => {}); // no receiver there: for tests of TCP alone
    for await (const line of createInterface(process.stdin)) {
      tcp.write(line);
      udp.send(line);
    }
  },
};
await commands[what ?? ""]?.();
