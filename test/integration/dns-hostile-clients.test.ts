/** What one client or one server may not do to the answers of others. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { frameOf, FrameReader } from "#dns/frames.ts";
import { decodeMessage, encodeMessage, type Message, type ResourceRecord } from "#dns/message.ts";
import { until } from "../support/until.ts";
import { address, HOST, listen, openScripted, openTestDns, reply, type Script, server } from "./dns-kit.ts";

interface Asking {
  readonly flags?: number;
  /** Of an OPT record: options in hexadecimal digits. */
  readonly options?: string;
}

const RECURSIVE = 0x0100;
const AUTHENTIC = 0x0020;

function askFor(name: string, { flags = RECURSIVE, options }: Asking = {}): Uint8Array {
  const opt: ResourceRecord | null =
    options === undefined
      ? null
      : { name: "", type: 41, class: 1232, ttl: 0, data: Buffer.from(options.replaceAll(" ", ""), "hex") };
  return encodeMessage({
    id: 4711,
    flags,
    questions: [{ name, type: 1, class: 1 }],
    answers: [],
    authorities: [],
    additionals: opt === null ? [] : [opt],
  });
}

const optionsOf = ({ additionals }: Message): string =>
  Buffer.from(additionals[0]?.data ?? []).toString("hex");

async function behind(script: Script) {
  const peer = await openScripted(script);
  const dns = await openTestDns({ nameserver: [server(`tcp://${HOST}:${peer.port}`)] });
  const ask = async (name: string, how?: Asking) =>
    decodeMessage(await dns.handle(askFor(name, how), { network: "tcp" }));
  const close = async () => {
    await dns[Symbol.asyncDispose]();
    await peer[Symbol.asyncDispose]();
  };
  return { peer, ask, [Symbol.asyncDispose]: close };
}

test("a TCP client has 64 questions under way, however many come at once", async () => {
  let [running, most] = [0, 0];
  await using front = await listen(async (message) => {
    most = Math.max(most, ++running);
    await nextTurn();
    running--;
    return message;
  });
  const client = connect(front.port, HOST);
  const asked = Array.from({ length: 500 }, (_, at) => frameOf(askFor(`n${at}.org`)));
  const got: Buffer[] = [];
  const frames = new FrameReader((frame) => void got.push(frameOf(frame)));
  client.on("data", (chunk: Buffer) => frames.push(chunk));
  client.end(Buffer.concat(asked));
  await once(client, "close");
  assert.deepEqual(Buffer.concat(got), Buffer.concat(asked));
  assert.equal(most, 64);
});

test("a client with thousands of slow questions leaves room for others", async () => {
  const slow = Promise.withResolvers<void>();
  let waiting = 0;
  await using front = await listen(async (message) => {
    const isSlow = decodeMessage(message).questions[0]?.name !== "quick.org";
    waiting += isSlow ? 1 : 0;
    if (isSlow) await slow.promise;
    return message;
  });
  using sockets = new DisposableStack();
  const open = () => sockets.adopt(createSocket("udp4"), (socket) => void socket.close());
  const [greedy, modest] = [open(), open()];
  greedy.bind(0, "127.0.0.2");
  modest.bind(0, "127.0.0.3");
  for (let sent = 0; sent < 5000; sent += 100) {
    for (let at = 0; at < 100; at++) greedy.send(askFor(`n${sent + at}.org`), front.port, HOST);
    await nextTurn();
  }
  const answered = once(modest, "message", { signal: AbortSignal.timeout(5000) });
  modest.send(askFor("quick.org"), front.port, HOST);
  await answered;
  await until("as many questions as may wait", () => waiting >= 1024);
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  assert.equal(waiting, 1024);
  slow.resolve();
});

test("a client with hundreds of connections leaves room for others", async () => {
  await using front = await listen(async (message) => message);
  using sockets = new DisposableStack();
  const open = (localAddress: string) => {
    const socket = connect({ port: front.port, host: HOST, localAddress });
    sockets.defer(() => socket.destroy());
    return socket.on("error", () => {});
  };
  const greedy = Array.from({ length: 256 }, () => open("127.0.0.2"));
  await Promise.all(greedy.map((socket) => once(socket, "connect")));
  const tooMany = open("127.0.0.2").resume();
  await once(tooMany, "close", { signal: AbortSignal.timeout(5000) });
  const other = open("127.0.0.3");
  other.write(frameOf(askFor("example.org")));
  await once(other, "data");
  greedy[0]?.destroy();
  await until("there is room again", async () => {
    const again = open("127.0.0.2");
    again.write(frameOf(askFor("example.org")));
    return await Promise.race([once(again, "data").then(() => true), once(again, "close").then(() => false)]);
  });
});

test("a client that wants no recursion does not decide what others get", async () => {
  const referral: ResourceRecord = {
    name: "org",
    type: 2,
    class: 1,
    ttl: 900,
    data: Buffer.from("\x02ns\0"),
  };
  await using dns = await behind((query) =>
    (query.flags & RECURSIVE) === 0
      ? { ...reply(query, []), authorities: [referral] }
      : reply(query, [address("example.org", "192.0.2.1")]),
  );
  const first = await dns.ask("example.org", { flags: 0 });
  assert.equal(first.flags & RECURSIVE, 0);
  assert.equal((await dns.ask("example.org")).answers.length, 1);
});

test("a client that asks whether an answer is authentic is told, whatever an earlier client asked", async () => {
  await using dns = await behind((query) => {
    const answer = reply(query, [address("example.org", "192.0.2.1")]);
    return { ...answer, flags: answer.flags | (query.flags & AUTHENTIC) };
  });
  assert.equal((await dns.ask("example.org")).flags & AUTHENTIC, 0);
  assert.equal((await dns.ask("example.org", { flags: RECURSIVE | AUTHENTIC })).flags & AUTHENTIC, AUTHENTIC);
});

test("an answer for the subnet of one client is not given to others", async () => {
  await using dns = await behind((query) =>
    reply(query, [address("example.org", optionsOf(query) === "" ? "192.0.2.1" : "198.51.100.1")]),
  );
  const subnet = "0008 0007 0001 18 00 c63364";
  const addressOf = ({ answers }: Message) => Buffer.from(answers[0]?.data ?? []).toString("hex");
  assert.equal(addressOf(await dns.ask("example.org", { options: subnet })), "c6336401");
  assert.equal(addressOf(await dns.ask("example.org")), "c0000201");
  assert.equal(addressOf(await dns.ask("example.org", { options: subnet })), "c6336401");
  assert.equal(dns.peer.asked.length, 2);
});

test("of a client's options one subnet goes on, where it is one", async () => {
  await using dns = await behind((query) => reply(query, [address("example.org", "192.0.2.1")]));
  const subnet = "0008 0007 0001 18 00 c63364";
  const long = `0008 4000 ${"00".repeat(0x4000)}`;
  const options = [
    "000a 0008 0102030405060708",
    `${subnet} ${subnet}`,
    long,
    "0008 0002 0001",
    "0008 00ff 0001",
  ];
  for (const each of options) await dns.ask("example.org", { options: each });
  assert.deepEqual(dns.peer.asked.map(optionsOf), ["", subnet.replaceAll(" ", "")]);
});

test("slow questions have a bounded number of sockets: the one that has waited longest gives way", async () => {
  const answered = Promise.withResolvers<void>();
  await using peer = await openScripted(async (query) => {
    const name = query.questions[0]?.name ?? "";
    if (name !== "quick.org") await answered.promise;
    return reply(query, [address(name, "192.0.2.1")]);
  });
  const nameserver = [server(`udp://${HOST}:${peer.port}`)];
  await using dns = await openTestDns({ nameserver }, { mostSockets: 8 });
  const codes: string[] = [];
  const ask = async (name: string): Promise<void> => {
    const { flags } = decodeMessage(await dns.handle(askFor(name), { network: "udp" }));
    codes.push(`${name} ${flags & 15}`);
  };
  const slow = Array.from({ length: 10 }, (_, at) => ask(`slow${at}.org`));
  await until("the oldest have given way", () => codes.length === 2);
  await ask("quick.org");
  assert.deepEqual(codes, ["slow0.org 2", "slow1.org 2", "slow2.org 2", "quick.org 0"]);
  answered.resolve();
  await Promise.all(slow);
  assert.deepEqual(new Set(codes.slice(4).map((code) => code.slice(-1))), new Set(["0"]));
});
