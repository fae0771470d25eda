/** Many sources that ask for what takes long leave room for those that ask little. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { decode, encode } from "dns-packet";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const SOURCES = 300;
/** Of each: together more than are answered at once. */
const QUESTIONS = 40;
const HONEST = 5;

const question = (name: string, id: number): Buffer =>
  Buffer.from(encode({ type: "query", id, flags: 256, questions: [{ type: "A", name }] }));

async function boundTo(address: string): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  socket.bind(0, address);
  await once(socket, "listening");
  return socket;
}

test("a flood by many sources leaves honest askers their answers", { timeout: 60_000 }, async () => {
  await using undo = new AsyncDisposableStack();
  const own = (socket: Socket): Socket => (undo.defer(() => void socket.close()), socket);
  const silent = own(await boundTo("127.0.0.1")); // the name server: never answers
  const [port] = (await freePorts(1)) as [number];
  const dns = `{ enable: true, listen: 127.0.0.1:${port}, nameserver: ["127.0.0.1:${silent.address().port}"] }`;
  undo.use(await startCore(`dns: ${dns}\nhosts: { honest.test: 192.0.2.7 }\nrules: ["MATCH,DIRECT"]\n`));
  const sources = await Promise.all(
    Array.from({ length: SOURCES }, (_, at) => boundTo(`127.0.${1 + (at >> 7)}.${1 + (at & 127)}`)),
  );
  sources.forEach(own);
  let id = 0;
  const flood = (): void => {
    for (const socket of sources) {
      const sent = question(`n${++id}.flood.test`, id & 0xffff);
      socket.send(sent, port, "127.0.0.1");
    }
  };
  for (let round = 0; round < QUESTIONS; round++) {
    flood();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const going = setInterval(flood, 50);
  undo.defer(() => clearInterval(going));

  let answered = 0;
  for (let at = 0; at < HONEST; at++) {
    const asker = own(await boundTo("127.0.0.1"));
    const ask = (): void => asker.send(question("honest.test", at + 1), port, "127.0.0.1");
    ask();
    const again = setInterval(ask, 500); // as resolvers do: what the kernel drops is asked for again
    const received = await once(asker, "message", { signal: AbortSignal.timeout(2_500) }).catch(() => null);
    clearInterval(again);
    const [first] = received === null ? [] : (decode(received[0] as Buffer).answers ?? []);
    if (first?.type === "A" && first.data === "192.0.2.7") answered++;
  }
  assert.ok(answered >= HONEST - 1, `${answered} of ${HONEST}`);
});
