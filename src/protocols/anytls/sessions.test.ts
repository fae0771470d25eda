import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair, type Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { runs } from "../../../test/support/runs.ts";
import { ClientSession, type ClientSessionOptions } from "./client-session.ts";
import type { ClientStream } from "./client-stream.ts";
import { DEFAULT_SCHEME, parseScheme } from "./padding.ts";
import { ServerSession, type ServerStream } from "./server-session.ts";
import * as wire from "./wire.ts";

const TARGET = encodeSocksAddress(toDestination("example.com", 443));

/** The end of a session is an error of its streams; here it is part of the play. */
function quiet<T extends Duplex>(stream: T): T {
  return stream.on("error", () => {});
}

interface Ends {
  readonly client: ClientSession;
  readonly events: string[];
  readonly far: Duplex;
}

function openClient(overrides: Partial<ClientSessionOptions> = {}): Ends {
  const [near, far] = duplexPair();
  const events: string[] = [];
  const options: ClientSessionOptions = {
    hash: wire.passwordHash("x"),
    scheme: DEFAULT_SCHEME,
    client: "test",
    sequence: 0,
    events: {
      scheme: (scheme) => events.push(`scheme ${scheme.stop}`),
      idle: () => events.push("idle"),
      closed: () => events.push("closed"),
      stranded: () => events.push("stranded"),
    },
    ...overrides,
  };
  return { client: new ClientSession(near, options), events, far };
}

/** Behind the preamble, as a server that speaks to `client`. */
async function serve(
  far: Duplex,
  onStream: (stream: ServerStream, host: string | null) => void,
): Promise<ServerSession> {
  await once(far, "readable");
  far.read(64);
  return new ServerSession(far, {
    scheme: DEFAULT_SCHEME,
    onStream: (stream, { host }) => onStream(quiet(stream), host),
    onClosed() {},
  });
}

test("the first writes are the records that peers send: 64, one of 100 to 399, then 7 and 507 to 1006", async () => {
  const { client, far } = openClient();
  const records: number[] = [];
  far.on("data", (bytes: Buffer) => records.push(bytes.length));
  quiet(client.open(TARGET));
  for (let round = 0; round < 20; round++) await turn();
  assert.equal(records[0], 64);
  // Where the 7 bytes of a padding frame do not fit in nothing is added to these 96.
  const first = records.slice(1).reduce((sum, size) => sum + size, 0);
  assert.ok(records.length <= 3 && first >= 96 && first < 400, `${records}`);
  client.send(wire.encodeFrame(wire.HEARTBEAT_RESPONSE, 0)); // write 2
  for (let round = 0; round < 20; round++) await turn();
  records.length = 0;
  client.send(wire.encodeFrame(wire.SYN, 2)); // write 3
  for (let round = 0; round < 20; round++) await turn();
  assert.equal(records[0], 7);
  assert.ok((records[1] as number) >= 507 && (records[1] as number) < 1007);
  client.close(null);
});

test("streams there and back, one after the other, and idle in between", async () => {
  const { client, events, far } = openClient();
  const answers: string[] = [];
  const serving = serve(far, (stream, host) => {
    answers.push(`${host}`);
    stream.answer(null);
    stream.pipe(stream);
  });
  for (let round = 1; round <= 3; round++) {
    const stream = quiet(client.open(TARGET));
    stream.write("hello");
    assert.equal(String(((await once(stream, "data")) as [Buffer])[0]), "hello");
    stream.destroy();
    assert.equal(events.length, round);
  }
  assert.deepEqual(answers, ["example.com", "example.com", "example.com"]);
  (await serving).close(null);
  await once(far, "close");
  assert.equal(events.at(-1), "closed");
});

test("a client that has ended, and reads slowly, has all of its answer", async () => {
  const { client, far } = openClient();
  const serving = serve(far, (stream) => {
    stream.answer(null);
    void (async () => {
      for (let count = 0; count < 60; count++) {
        await new Promise((done) => stream.write(Buffer.alloc(60_000), done));
        await turn();
      }
      stream.end();
    })();
  });
  const stream = quiet(client.open(TARGET));
  stream.end("hello");
  const server = await serving;
  await delay(1_500); // longer than an end is held back
  let size = 0;
  for await (const data of stream) size += (data as Buffer).length;
  assert.equal(size, 60 * 60_000);
  server.close(null);
});

test("a failed dial is reported in the SYNACK, the session stays", async () => {
  const { client, events, far } = openClient();
  await Promise.all([
    serve(far, (stream) => stream.answer(new Error("10.0.0.1 secret detail"))),
    (async () => {
      const stream = quiet(client.open(TARGET));
      const [error] = (await once(stream, "error")) as [Error];
      assert.match(error.message, /could not dial: failed$/);
    })(),
  ]);
  assert.deepEqual(events, ["idle"]);
  client.close(null);
});

test("a scheme that would have a write take megabytes is passed over, as one that cannot be read is", async () => {
  const { client, events, far } = openClient();
  const huge = `1=${Array.from({ length: 256 }, () => "65535-65535").join()}`;
  for (const text of [`stop=2\n${huge}`, "stop=many", "stop=3\n1=100-400"])
    far.write(wire.encodeFrame(wire.UPDATE_SCHEME, 0, Buffer.from(text)));
  for (let round = 0; round < 20; round++) await turn();
  assert.deepEqual(events, ["scheme 3"]);
  client.close(null);
});

test("the server's scheme comes before its settings and the first answer", async () => {
  const [near, far] = duplexPair();
  const scheme = parseScheme(Buffer.from("stop=1\n0=9-9"));
  const server = new ServerSession(far, {
    scheme,
    onStream: (stream) => quiet(stream).answer(null),
    onClosed() {},
  });
  const frames: string[] = [];
  const queue = new ByteQueue();
  near.on("data", (bytes: Buffer) => {
    queue.push(bytes);
    for (let frame = wire.takeFrame(queue); frame !== null; frame = wire.takeFrame(queue))
      frames.push(`${frame.command} ${frame.streamId} ${frame.data.length}`);
  });
  near.write(wire.encodeFrame(wire.SETTINGS, 0, Buffer.from("v=2\npadding-md5=other")));
  near.write(wire.encodeFrame(wire.SYN, 1));
  near.write(wire.encodeData(1, TARGET));
  near.write(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 5));
  near.write(wire.encodeFrame(99, 5, Buffer.from("skipped")));
  near.write(wire.encodeWaste(100));
  near.write(wire.encodeFrame(wire.FIN, 1, Buffer.from("data that does not belong here")));
  for (let round = 0; round < 20; round++) await turn();
  assert.deepEqual(frames, [`6 0 ${scheme.raw.length}`, "10 0 3", "7 1 0", "9 5 0"]);
  server.close(null);
});

test("version 1 gets neither settings nor answers; SYN before settings is an alert and the end", async () => {
  for (const [settings, expected] of [
    [`padding-md5=${DEFAULT_SCHEME.md5}`, ""],
    ["", "5"],
  ] as const) {
    const [near, far] = duplexPair();
    const server = new ServerSession(far, {
      scheme: DEFAULT_SCHEME,
      onStream: (stream) => quiet(stream).answer(null),
      onClosed() {},
    });
    let commands = "";
    near.on("data", (bytes: Buffer) => (commands += bytes[0]));
    near.write(wire.encodeFrame(wire.SETTINGS, 0, Buffer.from(settings)));
    near.write(wire.encodeFrame(wire.SYN, 1));
    near.write(wire.encodeData(1, TARGET));
    for (let round = 0; round < 20; round++) await turn();
    assert.equal(commands, expected);
    assert.equal(server.closed, expected !== "");
    server.close(null);
  }
});

test("an unanswered stream on a session used again moves to another with what was written", async () => {
  const stranded: ClientStream[] = [];
  const first = openClient();
  const events = {
    scheme() {},
    idle() {},
    closed() {},
    stranded: (stream: ClientStream) => void stranded.push(stream),
  };
  const old = openClient({ events });
  const serving = serve(old.far, (stream) => stream.answer(null));
  quiet(old.client.open(TARGET)).write("x");
  const server = await serving;
  for (let round = 0; round < 20; round++) await turn();
  const again = quiet(old.client.open(TARGET));
  again.write("kept");
  server.close(null); // with the second stream's SYN unread or unanswered
  await once(old.far, "close");
  again.write(" all");
  if (stranded.length === 0) return old.client.close(null); // answered before the end: nothing to move
  assert.deepEqual(stranded, [again]);
  const got = new Promise<string>((resolve) => {
    void serve(first.far, (stream) => {
      let text = "";
      stream.on("data", (bytes: Buffer) => {
        text += String(bytes);
        if (text.length === 8) resolve(text);
      });
    });
  });
  first.client.adopt(again);
  assert.equal(await got, "kept all");
  first.client.close(null);
});

test("random frames: an end or a wait, no crash", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(12), fc.nat(3), fc.uint8Array({ maxLength: 30 })), { maxLength: 20 }),
      async (frames) => {
        const [near, far] = duplexPair();
        near.on("error", () => {}).resume();
        const server = new ServerSession(far, {
          scheme: DEFAULT_SCHEME,
          onStream: (stream) => {
            stream.on("error", () => {}).resume();
            stream.answer(null);
          },
          onClosed() {},
        });
        near.write(Buffer.concat(frames.map(([command, id, data]) => wire.encodeFrame(command, id, data))));
        await turn();
        await turn();
        server.close(null);
      },
    ),
    { numRuns: runs(60) },
  );
});

test("byte by byte", async () => {
  const [near, far] = duplexPair();
  const got = new Promise<string>((resolve) => {
    const session = new ServerSession(far, {
      scheme: DEFAULT_SCHEME,
      onStream: (stream, { host }) =>
        quiet(stream).once("data", (bytes: Buffer) => {
          resolve(`${host} ${String(bytes)}`);
          session.close(null);
        }),
      onClosed() {},
    });
  });
  const all = Buffer.concat([
    wire.encodeFrame(wire.SETTINGS, 0, Buffer.from("v=2")),
    wire.encodeFrame(wire.SYN, 1),
    wire.encodeData(1, Buffer.concat([TARGET, Buffer.from("!")])),
  ]);
  near.resume();
  for (const byte of all) near.write(Buffer.from([byte]));
  assert.equal(await got, "example.com !");
});

/** A server whose client has said its settings, and what it has open. */
function served() {
  const [near, far] = duplexPair();
  const streams: ServerStream[] = [];
  const onStream = (stream: ServerStream): void => void streams.push(quiet(stream));
  const server = new ServerSession(far, { scheme: DEFAULT_SCHEME, onStream, onClosed() {} });
  near.write(wire.encodeFrame(wire.SETTINGS, 0, wire.encodeSettings({ v: "2" })));
  const open = (id: number): void =>
    void near.write(
      Buffer.concat([wire.encodeFrame(wire.SYN, id), wire.encodeFrame(wire.PSH, id, Buffer.from(TARGET))]),
    );
  return { near: quiet(near), far, server, streams, open };
}

test("answers that a client asks for and does not read end its session, whatever they are", async () => {
  const frames = [
    wire.encodeFrame(wire.SETTINGS, 0, wire.encodeSettings({ v: "2" })),
    wire.encodeFrame(wire.HEARTBEAT_REQUEST, 0),
  ];
  for (const frame of frames) {
    const { near, server } = served();
    const some = Buffer.concat(Array.from({ length: 2_000 }, () => frame));
    for (let sent = 0; sent < 200 && !server.closed; sent++) {
      near.write(some);
      await turn();
    }
    assert.ok(server.closed);
    near.destroy();
  }
});

test("a heartbeat ends no session whose client is slow to take what its streams say", async () => {
  const { near, server, streams, open } = served();
  for (let id = 1; id <= 40; id++) open(id);
  await turn();
  assert.equal(streams.length, 40);
  for (const stream of streams) stream.write(Buffer.alloc(60_000));
  await turn();
  near.write(wire.encodeFrame(wire.HEARTBEAT_REQUEST, 0));
  for (let round = 0; round < 5; round++) await turn();
  assert.ok(!server.closed);
  near.resume();
  server.close(null);
  near.destroy();
});

test("streams that a client has ended count until what they said was read", async () => {
  const { near, server, streams, open } = served();
  const refused = new Set<number>();
  near.on("data", (bytes: Buffer) => {
    if (bytes.includes("too many streams")) refused.add(bytes.readUInt32BE(1));
  });
  for (let id = 1; id <= 1_100; id++) {
    open(id);
    near.write(
      Buffer.concat([wire.encodeFrame(wire.PSH, id, Buffer.from("unread")), wire.encodeFrame(wire.FIN, id)]),
    );
    if (id % 50 === 0) await turn();
  }
  for (let round = 0; round < 5; round++) await turn();
  assert.equal(streams.length, 1_024);
  assert.ok(refused.size > 0);
  for (const stream of streams) stream.destroy();
  await turn();
  open(2_000);
  for (let round = 0; round < 5; round++) await turn();
  assert.equal(streams.length, 1_025);
  server.close(null);
  near.destroy();
});
