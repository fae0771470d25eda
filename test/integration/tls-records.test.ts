/** Connections of libssl whose bulk goes on without it: the same bytes, the same ends, and the peer notices nothing. */
import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createConnection, createServer, type AddressInfo, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { detachable, type Detachable } from "#core/handover.ts";
import { CipherMemory } from "#dataplane/workers/wire/cipher-memory.ts";
import { TlsRecordSource } from "#dataplane/workers/wire/tls-records.ts";
import { TlsWire } from "#dataplane/workers/wire/tls.ts";
import type { WireIo } from "#dataplane/workers/wire/wire.ts";
import { BUFFER_BYTES, EAGAIN, EINTR, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { BROKEN, Ssl } from "#platform/linux/ssl.ts";
import { SslSecrets } from "#platform/linux/ssl-secrets.ts";
import type { NativeTls } from "#platform/tls.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { nativeTls } from "../support/native-tls.ts";
import { missing } from "../support/peer.ts";
import { fixReceiveBuffer } from "../support/small-buffers.ts";
import { ffiFor } from "#platform/ffi.ts";

const native = nativeTls as NativeTls;
const skip = native === null ? "SKIP bulk over TLS: needs Linux and node:ffi" : false;
const BULK_BYTES = 3 * 1024 * 1024;
/** What a read has to find at once for bulk. */
const FAST_BYTES = 64 * 1024;
const pattern = (bytes: number): Buffer => Buffer.alloc(bytes, createHash("sha256").update("bulk").digest());

/** Says how much it has done. */
class CountingSsl extends Ssl {
  opened = 0;
  sealed = 0;

  constructor() {
    super(ffiFor("this test"), native.calls.buffer);
  }

  override read(object: bigint, size: number): number {
    const bytes = super.read(object, size);
    this.opened += bytes;
    return bytes;
  }

  override readRecord(object: bigint, size?: number): number {
    const bytes = super.readRecord(object, size);
    this.opened += bytes;
    return bytes;
  }

  override write(object: bigint, size: number): number {
    this.sealed += size;
    return super.write(object, size);
  }
}

/** The runtime takes it, but its types do not say so. */
const HALF_OPEN = { allowHalfOpen: true };
const sources = new Map<Uint8Array, TlsRecordSource | null>();

/** Of this thread. */
function source(): TlsRecordSource | null {
  const { buffer } = native.calls;
  const memory = sources.has(buffer) ? null : CipherMemory.open(buffer);
  if (memory !== null) sources.set(buffer, TlsRecordSource.open(memory));
  return sources.get(buffer) ?? null;
}

class Bench implements AsyncDisposable {
  readonly ssl = new CountingSsl();
  readonly io: WireIo = { calls: native.calls, bufferedBytes: 0, wakeAtMs: Infinity };
  readonly wire: TlsWire;
  readonly object: bigint;
  readonly #fd: number;

  private constructor(offer: Detachable) {
    const object = (this.object = BigInt(offer.detach().numbers[0] as number));
    this.#fd = offer.socket as number;
    assert.ok(this.ssl.outgoing.collect(object));
    this.wire = new TlsWire(this.ssl, object, this.#fd, { records: source });
  }

  /** A worker's side of what a listener has accepted from whom `dial` connects to it. */
  static async open<Client>(dial: (port: number) => Client): Promise<{ bench: Bench; client: Client }> {
    using tls = await openListenerTls(native);
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = dial((server.address() as AddressInfo).port);
    const [socket] = (await once(server, "connection")) as [Socket];
    server.close();
    fixReceiveBuffer(socket);
    const { stream } = await tls.accept(socket, { bypassable: true });
    return { bench: new Bench(detachable(stream) as Detachable), client };
  }

  /** As soon as so many bytes have come, framing included. */
  async has(bytes: number): Promise<void> {
    while (native.calls.available(this.#fd) < bytes) await delay(1);
  }

  /** Until so many bytes came, or reading says something else. */
  async read(most: number): Promise<{ text: Buffer; last: number }> {
    const parts: Buffer[] = [];
    for (let got = 0; got < most;) {
      const bytes = this.wire.readable ? this.wire.read(this.io, Math.min(BUFFER_BYTES, most - got)) : EAGAIN;
      if (bytes > 0) parts.push(Buffer.from(native.calls.buffer.subarray(0, bytes)));
      else if (bytes !== EAGAIN && bytes !== EINTR) return { text: Buffer.concat(parts), last: bytes };
      got += Math.max(0, bytes);
      if (bytes === EAGAIN) await nextTurn();
      this.wire.onEvents(READABLE);
    }
    return { text: Buffer.concat(parts), last: EAGAIN };
  }

  async write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + BUFFER_BYTES);
      native.calls.buffer.set(piece);
      const taken = this.wire.write(this.io, piece.length);
      assert.ok(taken > 0, `${taken}`);
      at += taken;
      while (this.wire.pending) {
        await nextTurn();
        this.wire.onEvents(WRITABLE);
        const sent = this.wire.flush(this.io);
        assert.ok(sent > 0 || sent === EAGAIN, `${sent}`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.wire.drop(this.io);
    native.calls.close(this.#fd);
    await nextTurn();
  }
}

/** With a client of node:tls. */
async function openBoth(
  options: Pick<ConnectionOptions, "ciphers" | "minVersion" | "maxVersion">,
): Promise<{ bench: Bench; client: TLSSocket } & AsyncDisposable> {
  const both = await Bench.open((port) => {
    const client = connect({ port, rejectUnauthorized: false, ...HALF_OPEN, ...options });
    return client.setNoDelay(true);
  });
  const close = async (): Promise<void> => {
    await both.bench[Symbol.asyncDispose]();
    both.client.destroy();
  };
  return { ...both, [Symbol.asyncDispose]: close };
}

async function allOf(client: TLSSocket, bytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of client.iterator({ destroyOnReturn: false })) {
    parts.push(part as Buffer);
    if (parts.reduce((sum, { length }) => sum + length, 0) >= bytes) break;
  }
  return Buffer.concat(parts);
}

/** Both ways, one behind the other. */
async function moveBulk(bench: Bench, client: TLSSocket): Promise<void> {
  const bytes = pattern(BULK_BYTES);
  client.write(bytes);
  assert.ok((await bench.read(BULK_BYTES)).text.equals(bytes));
  const arrived = allOf(client, BULK_BYTES);
  await bench.write(bytes);
  assert.ok((await arrived).equals(bytes));
}

/** Of what the library has opened and sealed. */
function assertLittle(...bytes: readonly number[]): void {
  assert.ok(
    Math.max(...bytes) < BULK_BYTES / 2,
    `the library has opened and sealed ${bytes.join(", ")} bytes`,
  );
}

for (const ciphers of ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
  test(`${ciphers}: the library does the beginning, and the end is said in TLS`, { skip }, async () => {
    await using both = await openBoth({ ciphers, minVersion: "TLSv1.3" });
    const { bench, client } = both;
    const { ssl, wire, io } = bench;
    await moveBulk(bench, client);
    assertLittle(ssl.opened, ssl.sealed);
    const ended = once(client, "end");
    client.resume();
    assert.equal(wire.endWriting(io), 0);
    await ended;
    client.end("and the last words");
    const { text, last } = await bench.read(Infinity);
    assert.deepEqual([String(text), last], ["and the last words", 0]);
  });

test("behind many small messages, too", { skip }, async () => {
  await using both = await openBoth({ minVersion: "TLSv1.3" });
  const { bench, client } = both;
  const { ssl } = bench;
  for (let round = 0; round < 500; round++) {
    client.write("x");
    assert.equal((await bench.read(1)).text.length, 1);
    const answer = allOf(client, 1);
    await bench.write(Buffer.of(round % 256));
    assert.equal((await answer)[0], round % 256);
  }
  await moveBulk(bench, client);
  assertLittle(ssl.opened, ssl.sealed);
});

/** The socket of a client, to which it writes while it `isCutting` in two halves: the other one goes out by `finish`. */
class CutSocket extends Duplex {
  isCutting = false;
  readonly #socket: Socket;
  #rest = Buffer.alloc(0);

  constructor(port: number) {
    super();
    this.#socket = createConnection(port, "127.0.0.1").setNoDelay(true);
    this.#socket.on("data", (bytes: Buffer) => this.push(bytes));
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    const size = this.isCutting ? bytes.length >> 1 : bytes.length;
    this.#socket.write(bytes.subarray(0, size), done);
    this.#rest = Buffer.from(bytes.subarray(size));
  }

  finish(): void {
    this.#socket.write(this.#rest);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

test("records that came in pieces are no reason to leave later ones to the library", { skip }, async () => {
  const { bench, client } = await Bench.open((port) => {
    const socket = new CutSocket(port);
    return { socket, tls: connect({ socket, rejectUnauthorized: false, minVersion: "TLSv1.3" }) };
  });
  await using _ = bench;
  const { socket, tls } = client;
  const fast = pattern(FAST_BYTES + 1000);
  tls.write(fast);
  await bench.has(fast.length);
  assert.ok((await bench.read(fast.length)).text.equals(fast));
  socket.isCutting = true;
  const short = pattern(1000);
  for (let round = 0; round < 40; round++) {
    tls.write(short);
    await bench.has(1);
    assert.equal(bench.wire.read(bench.io, short.length), EAGAIN);
    socket.finish();
    assert.ok((await bench.read(short.length)).text.equals(short));
  }
  socket.isCutting = false;
  tls.write(pattern(BULK_BYTES));
  for (const bytes of [FAST_BYTES, BULK_BYTES - FAST_BYTES]) {
    await bench.has(FAST_BYTES + 10_000);
    assert.equal((await bench.read(bytes)).text.length, bytes);
  }
  assertLittle(bench.ssl.opened);
  tls.destroy();
});

/** How long the first one is; what is no whole header is of a record that goes on. */
const recordIn = (bytes: Buffer): number => (bytes.length < 5 ? Infinity : 5 + bytes.readUInt16BE(3));

/** The socket of a client, with an attacker on the way who keeps what it writes while he `isHolding`, and passes on what he likes. */
class HeldSocket extends Duplex {
  isHolding = false;
  held: Buffer[] = [];
  /** The last record that it wrote before that. */
  passed = Buffer.alloc(0);
  #cut = Buffer.alloc(0);
  readonly #socket: Socket;

  constructor(port: number) {
    super();
    this.#socket = createConnection(port, "127.0.0.1").setNoDelay(true);
    this.#socket.on("data", (bytes: Buffer) => this.push(bytes));
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (!this.isHolding) {
      this.#keepLast(bytes);
      return void this.#socket.write(bytes, () => done());
    }
    this.held.push(Buffer.from(bytes));
    done();
  }

  #keepLast(bytes: Buffer): void {
    this.#cut = Buffer.concat([this.#cut, bytes]);
    for (let size = recordIn(this.#cut); size <= this.#cut.length; size = recordIn(this.#cut)) {
      this.passed = this.#cut.subarray(0, size);
      this.#cut = this.#cut.subarray(size);
    }
  }

  /** And no more. */
  pass(...records: readonly (Buffer | undefined)[]): void {
    for (const record of records) this.#socket.write(record ?? assert.fail("it was not written"));
    this.#socket.end();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

for (const { what, passed, heard } of [
  { what: "left out", passed: [1, 2], heard: "" },
  { what: "left out behind the first one", passed: [0, 2], heard: "first" },
  { what: "said again, of those before,", passed: [-1, 0], heard: "" },
  { what: "said again", passed: [0, 0, 1], heard: "first" },
  { what: "said again behind another one", passed: [0, 1, 0], heard: "firstsecond" },
])
  test(
    `a record that is ${what} on the way, where the library stops reading, is a fault`,
    { skip },
    async () => {
      const { bench, client } = await Bench.open((port) => {
        const socket = new HeldSocket(port);
        return { socket, tls: connect({ socket, rejectUnauthorized: false, minVersion: "TLSv1.3" }) };
      });
      await using _ = bench;
      const { socket, tls } = client;
      tls.on("error", () => {});
      const fast = pattern(FAST_BYTES);
      tls.write(fast);
      await bench.has(fast.length);
      assert.ok((await bench.read(fast.length)).text.equals(fast));
      socket.isHolding = true;
      for (const text of ["first", "second", "third"]) {
        const before = socket.held.length;
        tls.write(text);
        while (socket.held.length === before) await delay(1);
      }
      assert.equal(socket.held.length, 3);
      socket.pass(...passed.map((at) => (at < 0 ? socket.passed : socket.held[at])));
      await delay(20);
      const { text, last } = await bench.read(Infinity);
      assert.deepEqual([String(text), last], [heard, BROKEN]);
      tls.destroy();
    },
  );

test("TLS 1.2 stays the library's", { skip }, async () => {
  await using both = await openBoth({ maxVersion: "TLSv1.2" });
  const { bench, client } = both;
  const { ssl } = bench;
  await moveBulk(bench, client);
  assert.deepEqual([ssl.opened, ssl.sealed], [BULK_BYTES, BULK_BYTES]);
});

test("a place that a peer has made look right is not kept for long", { skip }, async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  await using both = await openBoth({ minVersion: "TLSv1.3" });
  const { object } = both.bench;
  const secrets = SslSecrets.open() ?? assert.fail();
  const all: Buffer[] = [];
  const look = (fits: (secret: Buffer) => boolean) =>
    secrets.find(object, "inward", 32, (secret) => fits(Buffer.from(secret)));
  const collect = (secret: Buffer): boolean => all.push(secret) < 0;
  assert.equal(look(collect), null);
  const { length } = all;
  assert.equal(look(collect), null);
  assert.equal(all.length, length); // not so soon again
  const wrong = all[0] ?? assert.fail();
  const right = all.find((one) => !one.equals(wrong)) ?? assert.fail();
  nowMs += 1_000;
  assert.deepEqual(
    look((secret) => secret.equals(wrong)),
    wrong,
  );
  for (let misses = 0; misses < 3; misses++)
    assert.equal(
      look((secret) => secret.equals(right)),
      null,
    );
  nowMs += 1_000;
  for (let times = 0; times < 3; times++)
    assert.deepEqual(
      look((secret) => secret.equals(right)),
      right,
    );
});

const MARK = 0x7e; // "~"
const WAYS = [
  { what: "only what it sends is bulk", up: true, down: false },
  { what: "only what it is sent is bulk", up: false, down: true },
  { what: "both directions are bulk", up: true, down: true },
];

/** Of OpenSSL's own client, whose single-letter commands do what no client of the runtime can. */
const openPeer = (...args: readonly string[]) =>
  Bench.open((port) => spawn("openssl", ["s_client", "-tls1_3", ...args, "-connect", `127.0.0.1:${port}`]));
const skipPeer = skip || missing("openssl");

/** Until the library reads no more of it. */
async function upload(bench: Bench, peer: ChildProcessWithoutNullStreams): Promise<void> {
  peer.stdin.write("x".repeat(BULK_BYTES));
  for (const bytes of [FAST_BYTES, BULK_BYTES - FAST_BYTES]) {
    await bench.has(FAST_BYTES + 10_000); // framing is some of it
    assert.equal((await bench.read(bytes)).text.length, bytes);
  }
  assert.ok(bench.ssl.opened < BULK_BYTES / 2, `the library has opened ${bench.ssl.opened}`);
}

test("a change of keys that it asked for goes out with the end, too", { skip: skipPeer }, async () => {
  const { bench, client: peer } = await openPeer();
  await using _ = bench;
  let said = "";
  peer.stdout.on("data", (text: Buffer) => (said += String(text)));
  peer.stderr.on("data", (text: Buffer) => (said += String(text)));
  await upload(bench, peer);
  await delay(20); // a command is one only where it begins what is read at once
  peer.stdin.write("K\n");
  while (!said.includes("KEYUPDATE")) await delay(1);
  peer.stdin.write("behind it\n");
  assert.equal(String((await bench.read(10)).text), "behind it\n");
  assert.equal(bench.wire.endWriting(bench.io), 0);
  const [code] = (await once(peer, "close")) as [number];
  assert.deepEqual([code, said.includes("closed")], [0, true]);
});

test("a peer that takes short records only gets no others", { skip: skipPeer }, async () => {
  const { bench, client: peer } = await openPeer("-maxfraglen", "1024");
  await using _ = bench;
  let heard = 0;
  peer.stdout.on("data", (text: Buffer) => (heard += text.filter((byte) => byte === MARK).length));
  await bench.write(Buffer.alloc(BULK_BYTES, MARK));
  while (heard < BULK_BYTES && peer.exitCode === null) await delay(1);
  assert.deepEqual([heard, peer.exitCode], [BULK_BYTES, null]);
  assertLittle(bench.ssl.sealed);
  peer.kill();
  await once(peer, "close");
});

for (const { what, up, down } of WAYS)
  test(`a peer changes its keys, and asks for ours to be changed: ${what}`, { skip: skipPeer }, async () => {
    const { bench, client: peer } = await openPeer();
    await using _ = bench;
    let [updates, heard] = [0, 0];
    peer.stdout.on("data", (text: Buffer) => {
      heard += text.filter((byte) => byte === MARK).length;
    });
    peer.stderr.on("data", (text: Buffer) => (updates += String(text).split("KEYUPDATE").length - 1));
    const until = async (isSo: () => boolean): Promise<void> => {
      while (!isSo() && peer.exitCode === null) await delay(1);
    };
    let marks = 0;
    const tell = async (bytes: number): Promise<void> => {
      await bench.write(Buffer.alloc(bytes, MARK));
      marks += bytes;
      await until(() => heard >= marks);
      assert.equal(heard, marks);
    };
    const hear = async (text: string): Promise<void> => {
      peer.stdin.write(text);
      assert.equal(String((await bench.read(text.length)).text), text);
    };
    await tell(1);
    if (up) await upload(bench, peer);
    const { opened } = bench.ssl;
    if (down) await tell(BULK_BYTES);
    for (const command of ["k", "K", "K", "k"]) {
      const before = updates;
      await delay(20); // a command is one only where it begins what is read at once
      peer.stdin.write(`${command}\n`);
      await until(() => updates > before);
      await hear(`behind ${command}\n`);
      await tell(10);
      if (down) await tell(100_000);
    }
    assert.ok(!up || bench.ssl.opened === opened, "the library has opened more");
    assert.ok(!down || bench.ssl.sealed < BULK_BYTES / 2, `the library has sealed ${bench.ssl.sealed}`);
    peer.kill();
    await once(peer, "close");
  });
