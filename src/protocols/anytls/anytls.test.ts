import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair, type Duplex } from "node:stream";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { ConfigError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { runs } from "../../../test/support/runs.ts";
import { ClientSession, type ClientSessionOptions } from "./client-session.ts";
import type { ClientStream } from "./client-stream.ts";
import { IdlePool } from "./idle-pool.ts";
import { DEFAULT_SCHEME, parseScheme, preamblePadding, shapeWrite } from "./padding.ts";
import { ServerSession, type ServerStream } from "./server-session.ts";
import { PasswordTable } from "#protocols/managed/password-table.ts";
import * as wire from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const TARGET = encodeSocksAddress(toDestination("example.com", 443));
const smallest = (from: number) => from;

describe("bytes", () => {
  test("the worked example", () => {
    const hash = "1c8bfe8f801d79745c4631d09fff36c82aa37fc4cce4fc946683d7b336b63032";
    assert.deepEqual(
      wire.encodePreamble(wire.passwordHash("letmein"), 30),
      hex(`${hash}001e${"00".repeat(30)}`),
    );
    const settings = wire.encodeSettings({
      v: "2",
      client: "example/1.0",
      "padding-md5": DEFAULT_SCHEME.md5,
    });
    assert.deepEqual(
      wire.encodeFrame(wire.SETTINGS, 0, settings),
      hex(
        "04000000000043763d320a636c69656e743d6578616d706c652f312e300a70616464696e672d6d64353d3735636666326164383961616466356532353730353965653537316562653131",
      ),
    );
    assert.deepEqual(wire.encodeFrame(wire.SYN, 1), hex("01000000010000"));
    assert.deepEqual(wire.encodeData(1, TARGET), hex("0200000001000f030b6578616d706c652e636f6d01bb"));
    assert.deepEqual(wire.encodeFrame(wire.FIN, 1), hex("03000000010000"));
    assert.deepEqual(wire.encodeWaste(5), hex("000000000000050000000000"));
    assert.equal(DEFAULT_SCHEME.raw.length, 137);
    assert.equal(DEFAULT_SCHEME.md5, "75cff2ad89aadf5e257059ee571ebe11");
  });

  test("every truncation waits; long data is cut into equal parts", () => {
    const frame = wire.encodeFrame(wire.SYNACK, 7, Buffer.from("text"));
    for (let size = 0; size < frame.length; size++) {
      const queue = new ByteQueue();
      queue.push(frame.subarray(0, size));
      assert.equal(wire.takeFrame(queue), null);
    }
    const long = wire.encodeData(3, Buffer.alloc(70_000));
    assert.equal(long.length, 70_000 + 2 * wire.HEADER_BYTES);
    assert.equal(long.readUInt16BE(5), 35_000);
  });

  test("settings: unknown keys and bad lines are passed over", () => {
    assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("v=2\nfoo\nx=y=z"))), 2);
    assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("client=a"))), 1);
    assert.equal(wire.versionIn(wire.decodeSettings(Buffer.from("v=two"))), 1);
  });
});

describe("padding", () => {
  const sizes = (index: number, payloadBytes: number) =>
    shapeWrite(DEFAULT_SCHEME, index, Buffer.alloc(payloadBytes, 1), smallest).map((piece) => piece.length);

  test("the default scheme, write by write, with the smallest sizes", () => {
    assert.equal(preamblePadding(DEFAULT_SCHEME), 30);
    assert.deepEqual(sizes(1, 76 + 7 + 22), [100, 5]); // more than the size: cut there, the rest unshaped
    assert.deepEqual(sizes(1, 80), [100]); // 80 + header 7 + 13 zeros
    assert.deepEqual(sizes(1, 95), [95]); // no room for a header: alone
    assert.deepEqual(sizes(1, 93), [93]);
    assert.deepEqual(sizes(1, 92), [100]);
    assert.deepEqual(sizes(2, 100), [400]); // then a check, and nothing is left
    assert.deepEqual(sizes(2, 1000), [400, 500, 500]);
    assert.deepEqual(sizes(2, 5000), [400, 500, 500, 500, 500, 2600]);
    assert.deepEqual(sizes(3, 7), [7, 507]); // a SYN alone, then pure waste of 7 + 500
    assert.deepEqual(sizes(3, 100), [9, 500]);
    assert.deepEqual(sizes(8, 7), [7]); // behind stop
  });

  test("what is added is waste, and nothing is lost", () => {
    fc.assert(
      fc.property(fc.nat(9), fc.uint8Array({ maxLength: 6000 }), (index, bytes) => {
        const frame = wire.encodeData(1, Buffer.from(bytes));
        const queue = new ByteQueue();
        queue.push(Buffer.concat([...shapeWrite(DEFAULT_SCHEME, index, frame)]));
        assert.deepEqual(wire.takeFrame(queue)?.data, Buffer.from(bytes));
        for (let rest = wire.takeFrame(queue); rest !== null; rest = wire.takeFrame(queue))
          assert.equal(rest.command, wire.WASTE);
        assert.equal(queue.length, 0);
      }),
    );
  });

  test("schemes that cannot be read are refused, odd ranges are not", () => {
    for (const text of [
      "",
      "0=30-30",
      "stop=x",
      "stop=3\n1=5",
      "stop=3\n1=1-70000",
      "stop=3\nfoo=1-2",
      "stop=-1",
    ])
      assert.throws(() => parseScheme(Buffer.from(text)), ConfigError, text);
    const odd = parseScheme(Buffer.from("stop=2\n1=50-40,0-0,c"));
    assert.deepEqual(
      shapeWrite(odd, 1, Buffer.alloc(45), smallest).map((piece) => piece.length),
      [40, 5],
    );
  });
});

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

describe("sessions", () => {
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
});

test("idle pool: the youngest first; old ones go, but for so many of the youngest", () => {
  const pool = new IdlePool({ checkIntervalMs: 1_000_000, timeoutMs: 10, minIdle: 1 });
  const closed: number[] = [];
  const make = (sequence: number) => {
    const session = {
      sequence,
      close: () => (closed.push(sequence), pool.remove(session)),
    } as unknown as ClientSession;
    return session;
  };
  const sessions = [1, 2, 3].map(make);
  for (const session of sessions) pool.put(session);
  assert.equal(pool.take()?.sequence, 3);
  pool.check(performance.now() + 11);
  assert.deepEqual(closed, [1]);
  assert.equal(pool.take()?.sequence, 2);
  assert.equal(pool.take(), null);
  pool.put(sessions[0] as ClientSession);
  pool[Symbol.dispose]();
  pool.put(sessions[1] as ClientSession);
  assert.deepEqual(closed, [1, 1, 2]);
});

test("users: one password each", () => {
  const none = PasswordTable.empty(wire.passwordHash);
  const table = none.with([{ id: "ada", credential: "a", flow: null }], "listener x");
  assert.equal(table.find(wire.passwordHash("a")), "ada");
  assert.equal(table.find(wire.passwordHash("b")), null);
  const twins = ["ada", "bob"].map((id) => ({ id, credential: "same", flow: null }));
  assert.throws(() => none.with(twins, "listener x"), /ada and bob have the same password/);
});
