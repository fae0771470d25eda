import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { Fault } from "#core/fields.ts";
import { memoryPair } from "#protocols/http/memory-pair.ts";
import { skipLarge } from "../../../../test/support/runs.ts";
import { type CipherName, CountedAead, hashOf, openMask } from "./cipher.ts";
import { EncryptionClient } from "./client.ts";
import { newEncryption } from "./generate.ts";
import { type Encrypted, HeaderMask } from "./leaving.ts";
import { EncryptionServer } from "./server.ts";
import {
  type ClientEncryption,
  readClientEncryption,
  readServerEncryption,
  type ServerEncryption,
} from "./settings.ts";
import { TicketBook } from "./tickets.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const IV = hex("000102030405060708090a0b0c0d0e0f");
const KEY = Buffer.alloc(32, 0x42);
const never = new AbortController().signal;

test("keys, masks and sealed pieces are those of the specification's vectors", () => {
  using aes = new CountedAead("aes-256-gcm", IV, KEY);
  assert.equal(aes.seal(hex("04d0")).toString("hex"), "4e6625bd198c013d0e6707c5f616c0756406");
  using chacha = new CountedAead("chacha20-poly1305", IV, KEY);
  assert.equal(chacha.seal(hex("04d0")).toString("hex"), "c5ff494d937cd8c9fb1072284bafcefedad1");
  assert.equal(
    openMask(KEY, IV).update(Buffer.alloc(16)).toString("hex"),
    "cdd9a33ba84f1a22f81ccd73c662d71f",
  );
  assert.equal(
    hashOf(KEY).toString("hex"),
    "bcff11daf7dbb8c789b7bcc4e45298041666f92fa8454b1c3fa86e174fd611e4",
  );
  using record = new CountedAead("aes-256-gcm", Buffer.alloc(1216, 0x22), Buffer.alloc(96, 0x11));
  assert.equal(
    record.seal(Buffer.from("hello"), hex("1703030015")).toString("hex"),
    "9276f552f9ca2383f781f4d6b4948d3975af33817a",
  );
});

test("settings are read, and what is wrong with them is said without a key", () => {
  const { client, server } = newEncryption("native", "x25519");
  assert.ok(isClient(readClientEncryption(client)));
  assert.ok(isServer(readServerEncryption(server)));
  assert.equal(readClientEncryption("none"), null);
  assert.equal(readServerEncryption(""), null);
  const key = client.split(".").at(-1) ?? "";
  for (const [text, message] of [
    [`mlkem768.native.0rtt.${key}`, /did you mean|expected none or mlkem768x25519plus/],
    [`mlkem768x25519plus.plain.0rtt.${key}`, /native, xorpub or random/],
    [`mlkem768x25519plus.native.2rtt.${key}`, /0rtt or 1rtt/],
    ["mlkem768x25519plus.native.0rtt", /a key/],
    [`mlkem768x25519plus.native.0rtt.${key}A`, /key 1: expected base64url/],
    [`mlkem768x25519plus.native.0rtt.50-0-10.${key}`, /first length/],
    [`mlkem768x25519plus.native.0rtt.100-40-90000.${key}`, /more than/],
    [`mlkem768x25519plus.native.0rtt.often.${key}`, /probability-from-to/],
  ] as const) {
    const fault = readClientEncryption(text);
    assert.ok(fault instanceof Fault, text);
    assert.match(fault.message, message);
    assert.ok(!fault.message.includes(key));
  }
  for (const time of ["x", "700-600s", "70000s"])
    assert.ok(readServerEncryption(server.replace("600s", time)) instanceof Fault, time);
});

for (const appearance of ["native", "xorpub", "random"] as const)
  for (const kinds of [["x25519"], ["mlkem768"], ["x25519", "mlkem768"], ["mlkem768", "x25519"]] as const)
    test(`${appearance} by ${kinds.join(" and ")}: both ways, then with a ticket`, async () => {
      const { client, server } = pair(appearance, kinds);
      for (const round of ["handshake", "ticket", "ticket again"]) {
        const wire = recordingWire();
        const [near, far] = await open(client, server, wire);
        await exchange(near, far, round);
        await exchange(far, near, round);
        const isResumed = round !== "handshake";
        const hopsSize = kinds.reduce((sum, kind) => sum + (kind === "x25519" ? 32 : 1088), 16);
        const ticketAt = hopsSize + (kinds.length - 1) * 32 + 18;
        if (isResumed) assert.ok(wire.sent().length > ticketAt + 32);
        if (appearance === "native" && isResumed)
          assert.equal(wire.sent().readUIntBE(ticketAt + 32, 3), 0x170303, "records follow the ticket");
        near.destroy();
        far.destroy();
      }
      // Both rounds with a ticket needed no second handshake.
      assert.equal(server.handshakes, 1);
    });

test("the server finds out that a client takes chacha20", async () => {
  const { client, server } = pair("random", ["mlkem768"], { cipher: "chacha20-poly1305" });
  for (const round of ["handshake", "ticket"]) {
    const [near, far] = await open(client, server, recordingWire());
    await exchange(near, far, round);
    await exchange(far, near, round);
    near.destroy();
    far.destroy();
  }
});

test("a handshake for another key, a replay and an unknown ticket are refused; the client comes again", async () => {
  const { client, server } = pair("native", ["x25519"]);
  const other = pair("native", ["x25519"]);
  await assert.rejects(open(client, other.server, recordingWire()), /handshake/);
  const [near, far] = await open(client, server, recordingWire());
  await exchange(near, far, "first");
  // A ticket that the server has forgotten costs one connection. The key is the same.
  const forgetful = pair("native", ["x25519"], { like: server.settings });
  const forgotten = recordingWire();
  const { stream: stale } = await client.open(forgotten.near, never);
  const isRefused = once(stale, "error");
  stale.resume().write("early");
  await assert.rejects(forgetful.server.accept(forgotten.far, 5_000), /not known/);
  assert.match(`${(await isRefused)[0]}`, /no record header/);
  const [again, farAgain] = await open(client, forgetful.server, recordingWire());
  await exchange(again, farAgain, "after the refusal");
  // What was recorded is no use.
  const recorded = recordingWire();
  const [third, farThird] = await open(client, forgetful.server, recorded);
  await exchange(third, farThird, "with a ticket");
  const [replay, replayFar] = memoryPair();
  replay.write(recorded.sent());
  await assert.rejects(forgetful.server.accept(replayFar, 1_000), /came again/);
  for (const stream of [near, far, again, farAgain, third, farThird, replay]) stream.destroy();
});

test(
  "every cut and every changed byte of a handshake ends it, and nothing is handed on",
  { skip: skipLarge },
  async () => {
    const { client, server } = pair("xorpub", ["x25519"]);
    const wire = recordingWire();
    const [near, far] = await open(client, server, wire);
    const hello = Buffer.from(wire.sent());
    near.destroy();
    far.destroy();
    for (let at = 0; at < hello.length; at += 7) {
      const changed = Buffer.from(hello);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const [a, b] = memoryPair();
      a.on("error", () => {});
      b.on("error", () => {});
      a.end(changed);
      await assert.rejects(server.accept(b, 5_000), `byte ${at}`);
      const [c, d] = memoryPair();
      c.end(hello.subarray(0, at));
      await assert.rejects(server.accept(d, 5_000), `cut at ${at}`);
      for (const stream of [a, b, c, d]) stream.destroy();
    }
  },
);

/** A record as the connection inside writes it. */
function innerRecord(size: number): Buffer {
  const record = Buffer.concat([hex("1703030000"), randomBytes(size)]);
  record.writeUInt16BE(size, 3);
  return record;
}

for (const appearance of ["native", "random"] as const)
  test(`${appearance}: records are left behind, and headers of those inside stay masked where they were`, async () => {
    const { client, server } = pair(appearance, ["x25519"]);
    for (const round of ["handshake", "ticket"]) {
      const wire = recordingWire();
      const [near, far] = await openBoth(client, server, wire, true);
      far.stream.write("an answer");
      assert.equal(String((await once(near.stream, "data"))[0]), "an answer", round);
      const raw: Buffer[] = [];
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      far.stream.on("data", (bytes: Buffer) => {
        assert.equal(String(bytes), "the last record", round);
        far.bypass?.leaveRead({ data: (piece) => void raw.push(Buffer.from(piece)), end: resolve });
      });
      await new Promise((done) => near.stream.write("the last record", done));
      const before = wire.sent().length;
      const out = near.bypass?.leaveWrite() ?? assert.fail();
      const inner = [innerRecord(700), innerRecord(1), innerRecord(16_000)];
      const bytes = Buffer.concat(inner);
      for (let at = 0, size = 1; at < bytes.length; at += size++) out.write(bytes.subarray(at, at + size));
      out.end();
      await ended;
      assert.deepEqual(Buffer.concat(raw), bytes, round);
      const sent = wire.sent().subarray(before);
      assert.equal(sent.length, bytes.length);
      assert.equal(sent.equals(bytes), appearance === "native");
      assert.deepEqual(sent.subarray(5, 705), bytes.subarray(5, 705), "contents go as they are");
      if (appearance === "random")
        for (const at of [0, 705, 711]) assert.notDeepEqual(sent.subarray(at, at + 3), hex("170303"));
      for (const { stream } of [near, far]) stream.destroy();
    }
  });

test("what is no record is masked in pieces of five bytes, as peers do it", () => {
  const bytes = Buffer.concat([Buffer.from("GET / HTTP/1.1\r\n"), innerRecord(30), hex("15030300020100")]);
  for (const size of [1, 2, 5, 7, 100]) {
    const [masks, unmasks] = [openMask(KEY, IV), openMask(KEY, IV)];
    const outward = new HeaderMask(masks, "masks");
    const inward = new HeaderMask(unmasks, "unmasks");
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size)
      pieces.push(inward.apply(outward.apply(bytes.subarray(at, at + size))));
    assert.deepEqual(Buffer.concat(pieces), bytes, `pieces of ${size}`);
  }
});

interface Sides {
  readonly client: EncryptionClient;
  readonly server: EncryptionServer & { handshakes: number; readonly settings: ServerEncryption };
}

type Kind = "x25519" | "mlkem768";

function pair(
  appearance: ClientEncryption["appearance"],
  kinds: readonly Kind[],
  { like, cipher }: { readonly like?: ServerEncryption; readonly cipher?: CipherName } = {},
): Sides {
  const made = kinds.map((kind) => newEncryption(appearance, kind));
  const client = readClientEncryption(chain(made.map((each) => each.client)));
  const settings = like ?? readServerEncryption(chain(made.map((each) => each.server)));
  assert.ok(isClient(client) && isServer(settings));
  const book = new TicketBook(Date.now);
  const server = Object.assign(new EncryptionServer(settings, book), { handshakes: 0, settings });
  const issue = book.issue.bind(book);
  book.issue = (key, seconds) => {
    server.handshakes++;
    return issue(key, seconds);
  };
  return { client: new EncryptionClient(client, Date.now, cipher), server };
}

/** All keys of settings that are alike otherwise, in one. */
function chain(settings: readonly string[]): string {
  const [first = ""] = settings;
  return [first, ...settings.slice(1).map((each) => each.split(".").at(-1) ?? "")].join(".");
}

function isClient(value: ReturnType<typeof readClientEncryption>): value is ClientEncryption {
  return value !== null && !(value instanceof Fault);
}

function isServer(value: ReturnType<typeof readServerEncryption>): value is ServerEncryption {
  return value !== null && !(value instanceof Fault);
}

interface Wire {
  readonly near: Duplex;
  readonly far: Duplex;
  sent(): Buffer;
}

function recordingWire(): Wire {
  const [near, far] = memoryPair();
  const sent: Buffer[] = [];
  const write = near.write.bind(near);
  near.write = ((bytes: Buffer, ...rest: never[]) => {
    sent.push(Buffer.from(bytes));
    return write(bytes, ...rest);
  }) as typeof near.write;
  near.on("error", () => {});
  far.on("error", () => {});
  return { near, far, sent: () => Buffer.concat(sent) };
}

async function open(
  client: EncryptionClient,
  server: Sides["server"],
  wire: Wire,
): Promise<[Duplex, Duplex]> {
  const [near, far] = await openBoth(client, server, wire, false);
  return [near.stream, far.stream];
}

async function openBoth(
  client: EncryptionClient,
  server: Sides["server"],
  wire: Wire,
  mayLeave: boolean,
): Promise<[Encrypted, Encrypted]> {
  const near = client.open(wire.near, never, mayLeave);
  const far = server.accept(wire.far, 5_000, mayLeave);
  far.catch(() => wire.far.destroy());
  near.then(({ stream }) => stream.write("")).catch(() => wire.near.destroy());
  const both = await Promise.all([near, far]);
  for (const { stream } of both) stream.on("error", () => {});
  return both;
}

async function exchange(from: Duplex, to: Duplex, what: string): Promise<void> {
  const sent = randomBytes(100_000);
  from.write(sent);
  const pieces: Buffer[] = [];
  for (let size = 0; size < sent.length;) {
    const chunk = (to.read() as Buffer | null) ?? (await once(to, "readable"), to.read() as Buffer | null);
    if (chunk === null) continue;
    pieces.push(chunk);
    size += chunk.length;
  }
  assert.ok(Buffer.concat(pieces).equals(sent), what);
}
