/** The accepting side of QUIC on a network inside the test. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { QuicClient } from "#transport/quic/client.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { encodeVersions } from "#transport/quic/server/stateless-answers.ts";
import { readHeader, RETRY, VERSION_NEGOTIATION } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { echoed, endpointAt, ServerNetwork } from "../support/quic-server-network.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const at = (port: number, ip = "192.0.2.1") => ({ endpoint: endpointAt(ip, port) });
const headerOf = (datagram: Buffer) => readHeader(new WireReader().reset(datagram));

describe("a QUIC server", { skip: SKIP }, () => {
  test("clients are told apart by their connection ids, and forgotten when they are gone", async () => {
    await using network = new ServerNetwork();
    const endpoint = network.serve();
    const clients = await Promise.all([1, 2, 3].map((port) => network.dial(at(port))));
    for (const client of clients) {
      const bytes = randomBytes(50_000);
      assert.deepEqual(await echoed(client, bytes), bytes);
    }
    assert.equal(endpoint.size, 3);
    for (const client of clients) client.close(0);
    await until("nothing is left", () => endpoint.size === 0);
    assert.equal(endpoint.ids, 0);
  });

  test("another version is answered with the one that is spoken, and short packets are not", async () => {
    await using network = new ServerNetwork();
    const endpoint = network.serve();
    const { endpoint: from } = at(1);
    const head = Buffer.from("c01a2a3a4a080102030405060708040a0b0c0d", "hex");
    network.arrive(Buffer.concat([head, Buffer.alloc(1200)]), from);
    network.arrive(Buffer.concat([head, Buffer.alloc(1000)]), from);
    const answers = network.sentTo(from);
    assert.equal(answers.length, 1);
    const [answer = Buffer.alloc(0)] = answers;
    assert.equal(headerOf(answer).type, VERSION_NEGOTIATION);
    assert.deepEqual(Buffer.from(headerOf(answer).destination), Buffer.from("0a0b0c0d", "hex"));
    const reserved = answer.subarray(-4).toString("hex");
    assert.match(reserved, /^(.a){4}$/);
    assert.notEqual(reserved, "1a2a3a4a", "the client would ignore a list that has its own version");
    network.arrive(
      Buffer.concat([encodeVersions(randomBytes(8), randomBytes(8), 1), Buffer.alloc(1200)]),
      from,
    );
    assert.deepEqual([network.sentTo(from).length, endpoint.size], [1, 0]);
  });

  test("with many handshakes under way a client has to show its address, and is served then", async () => {
    await using network = new ServerNetwork();
    const endpoint = network.serve();
    const first = new Map<number, Buffer>();
    network.toServer = (datagram, { port }) =>
      first.has(port) ? null : (first.set(port, datagram), datagram);
    const slow = new AbortController();
    const ports = Array.from({ length: 64 }, (_, index) => index + 1);
    const dials = ports.map((port) => network.dial(at(port), {}, slow.signal).catch(() => null));
    await until("all handshakes are under way", () => endpoint.size === 64);
    network.toServer = (datagram) => datagram;
    const [client, other] = await Promise.all([network.dial(at(1000)), network.dial(at(1001))]);
    for (const port of [1000, 1001]) {
      const [answer = Buffer.alloc(0)] = network.sentTo(at(port).endpoint);
      assert.equal(headerOf(answer).type, RETRY);
    }
    assert.equal(String(await echoed(client, Buffer.from("here"))), "here");
    assert.equal(String(await echoed(other, Buffer.from("too"))), "too");
    slow.abort(new Error("the test ends"));
    await Promise.all(dials);
  });

  test("a token is good for one address, one packet and a short time", async () => {
    const { ServerSecrets } = await import("#transport/quic/server/secrets.ts");
    const secrets = new ServerSecrets();
    const [from, original, source] = [at(1).endpoint, randomBytes(8), randomBytes(8)];
    const token = secrets.sealToken(from, original, source, 1000);
    const open = (changed: Partial<{ token: Buffer; port: number; source: Buffer; nowMs: number }> = {}) =>
      secrets.openToken(
        changed.token ?? token,
        at(changed.port ?? 1).endpoint,
        changed.source ?? source,
        changed.nowMs ?? 1001,
      );
    assert.deepEqual(Buffer.from(open() ?? []), original);
    assert.equal(open({ port: 2 }), null);
    assert.equal(open({ source: randomBytes(8) }), null);
    assert.equal(open({ nowMs: 12_000 }), null);
    for (let size = 0; size < token.length; size++)
      assert.equal(open({ token: token.subarray(0, size) }), null);
    for (let place = 0; place < token.length; place++) {
      const changed = Buffer.from(token);
      changed[place] = (changed[place] ?? 0) ^ 1;
      assert.equal(open({ token: changed }), null);
    }
  });

  test("100,000 Initials of changing addresses leave a bounded number of connections, and others get in", async () => {
    await using network = new ServerNetwork();
    const endpoint = network.serve();
    let hello: Buffer | null = null;
    network.toServer = (datagram) => ((hello ??= datagram), null);
    const give = new AbortController();
    const dial = network.dial(at(9), {}, give.signal).catch(() => null);
    await until("a hello", () => hello !== null);
    const template: Buffer = hello ?? Buffer.alloc(0);
    let most = 0;
    for (let count = 0; count < 100_000; count++) {
      const { endpoint: from } = at(1 + (count % 60_000), `198.51.${100 + (count % 7)}.${count % 250}`);
      const changed = Buffer.from(template);
      changed.writeUInt32BE(count, 6); // another connection, whose keys do not fit
      network.arrive(count % 2 === 0 ? template : changed, from);
      most = Math.max(most, endpoint.size);
      if (count % 1000 !== 0) continue;
      network.sent.clear();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(most <= 64, `${most} connections`);
    network.toServer = (datagram) => datagram;
    const client = await network.dial(at(10));
    assert.equal(String(await echoed(client, Buffer.from("in"))), "in");
    give.abort(new Error("the test ends"));
    await dial;
  });

  test("in a flood only clients that are known or have a token are read, and all others again when it is over", async () => {
    await using network = new ServerNetwork();
    network.serve();
    const hellos: Buffer[] = [];
    const known: Buffer[] = [];
    network.toServer = (datagram) => (known.push(datagram), datagram);
    const client = await network.dial(at(1));
    network.toServer = (datagram, { port }) => (port === 1 ? datagram : (hellos.push(datagram), null));
    const give = new AbortController();
    const dial = network.dial(at(9), {}, give.signal).catch(() => null);
    await until("a hello", () => hellos.length > 0);
    const [hello = Buffer.alloc(0)] = hellos;
    const unknown = (): Buffer => Buffer.concat([hello.subarray(0, 6), randomBytes(8), hello.subarray(14)]);
    assert.equal(network.refuses(unknown()), false, "nothing was refused an answer");
    let count = 0;
    for (; count < 5000 && !network.refuses(unknown()); count++)
      network.arrive(unknown(), at(2000 + count).endpoint);
    assert.ok(count >= 64 && count < 5000, `refuses behind ${count}`);
    const retried = network.sentTo(at(2063).endpoint)[0] ?? Buffer.alloc(0);
    const { source, token } = headerOf(Buffer.from(retried));
    assert.deepEqual([headerOf(Buffer.from(retried)).type, source.length, token.length], [RETRY, 8, 0]);
    const tokenAt = 6 + 8 + 1 + (hello[14] ?? 0);
    const withToken = Buffer.concat([
      hello.subarray(0, tokenAt),
      Buffer.of(4, 1, 2, 3, 4),
      hello.subarray(tokenAt + 1),
    ]);
    const last = known.at(-1) ?? Buffer.alloc(0);
    while (!network.refuses(unknown())) network.arrive(unknown(), at(1999).endpoint);
    assert.deepEqual(
      [network.refuses(last), network.refuses(withToken), network.refuses(Buffer.alloc(1))],
      [false, false, false],
    );
    assert.equal(String(await echoed(client, Buffer.from("known"))), "known");
    await until("the flood is over", () => !network.refuses(unknown()));
    give.abort(new Error("the test ends"));
    await dial;
  });

  test("a server that has lost a connection says so, and the client ends it at once", async () => {
    await using network = new ServerNetwork();
    network.serve();
    const client = await network.dial(at(1));
    await echoed(client, Buffer.from("x"));
    network.forget();
    network.serve();
    const stream = client.connection.open(true);
    stream?.on("error", () => {});
    stream?.write(Buffer.alloc(1000));
    assert.match(String(await client.closed), /the peer has lost the connection/);
  });

  test("a client whose port changes is followed at once; from another host three bytes for one until it answers", async () => {
    await using network = new ServerNetwork();
    network.serve();
    const place = at(1);
    const client = await network.dial(place);
    await echoed(client, randomBytes(20_000));
    place.endpoint = at(2).endpoint;
    const bytes = randomBytes(200_000);
    assert.deepEqual(await echoed(client, bytes), bytes);
    assert.ok(network.sentTo(at(2).endpoint).length > 100);

    place.endpoint = endpointAt("198.51.100.7", 5);
    const more = randomBytes(200_000);
    assert.deepEqual(await echoed(client, more), more);
    assert.ok(network.sentTo(place.endpoint).length > 100);
  });

  test("who forwards a client's packets from elsewhere gets three bytes for one, and the client stays", async () => {
    await using network = new ServerNetwork();
    network.serve();
    const client = await network.dial(at(1));
    await echoed(client, randomBytes(20_000));
    const thief = endpointAt("198.51.100.9", 9);
    let stolen = 0;
    network.toServer = (datagram, from) => {
      if (stolen > 0) return datagram;
      stolen = datagram.length;
      network.arrive(datagram, thief); // before the client's own
      return from.port === 1 ? datagram : null;
    };
    const bytes = randomBytes(300_000);
    assert.deepEqual(await echoed(client, bytes), bytes);
    const got = network.sentTo(thief).reduce((sum, { length }) => sum + length, 0);
    assert.ok(got > 0 && got <= 3 * stolen, `${got} bytes for ${stolen}`);
  });

  test("a listener that is opened anew on the socket takes new clients, and those there stay", async () => {
    await using network = new ServerNetwork();
    const before = network.serve();
    const client = await network.dial(at(1));
    const after = network.serve();
    const late = await network.dial(at(2));
    assert.equal(String(await echoed(client, Buffer.from("old"))), "old");
    assert.equal(String(await echoed(late, Buffer.from("new"))), "new");
    assert.deepEqual([before.size, after.size], [1, 1]);
  });

  test("streams of clients that have not shown who they are count: the oldest give way to others", async () => {
    await using network = new ServerNetwork();
    network.serve({
      onConnection: (client) => {
        if (client.peer.port === 1) client.settle();
        return { onStream: (stream) => void stream.on("error", () => {}).resume(), onDatagram() {} };
      },
    });
    const clients: QuicClient[] = [];
    for (let port = 1; port <= 6; port++) {
      const client = await network.dial(at(port));
      for (let count = 0; count < 1000; count++)
        client.connection
          .open(true)
          ?.on("error", () => {})
          .write("x");
      clients.push(client);
    }
    await until("one has given way", () => clients.some(({ connection }) => connection.isClosed));
    assert.deepEqual(
      clients.map(({ connection }) => connection.isClosed),
      [false, true, false, false, false, false],
    );
  });

  test("when the socket closes the clients hear of it", async () => {
    const network = new ServerNetwork();
    network.serve();
    const client = await network.dial(at(1));
    await echoed(client, Buffer.from("x"));
    network.close();
    const end = await client.closed;
    assert.ok(end instanceof PeerClosed && end.closeCode === 0x100, String(end));
  });

  test("hostile bytes: every cut and many changes of good datagrams leave the connection as it is", async () => {
    await using network = new ServerNetwork();
    const endpoint = network.serve();
    const seen: Buffer[] = [];
    network.toServer = (datagram) => (seen.push(datagram), datagram);
    const client = await network.dial(at(1));
    await echoed(client, randomBytes(5000));
    for (const datagram of seen.slice(0, 8)) {
      for (let size = 0; size < datagram.length; size += 7)
        network.arrive(datagram.subarray(0, size), at(1).endpoint);
      for (let count = 0; count < 300; count++) {
        const changed = Buffer.from(datagram);
        changed.writeUInt8(count % 256, (count * 31) % changed.length);
        network.arrive(changed, count % 2 === 0 ? at(1).endpoint : endpointAt("198.51.100.3", count + 1));
      }
    }
    for (let count = 0; count < 3000; count++)
      network.arrive(randomBytes(1 + (count % 1500)), endpointAt("198.51.100.4", 1 + count));
    assert.equal(String(await echoed(client, Buffer.from("still"))), "still");
    assert.ok(endpoint.size <= 66, `${endpoint.size} connections`);
  });
});
