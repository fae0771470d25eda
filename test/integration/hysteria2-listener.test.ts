/** The listener of hysteria2 on real sockets, with our node and with visitors. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DialError } from "#core/errors.ts";
import type { Accept, ManagedInbound } from "#core/inbound.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Datagram, Session } from "#core/session.ts";
import { boundAddress } from "#core/sockets.ts";
import { toDestination } from "#net/address/ip.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { ask, openListener as openIn, openNode, readAnswer, visit } from "../support/hysteria2-listener.ts";
import { echo, exchange } from "../support/echo-session.ts";
import { openQuicEngine } from "../support/quic-engine.ts";
import type { Field } from "#transport/http3/qpack.ts";
import { encodeHeaders } from "#transport/http3/request.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const TO = toDestination("origin.test", 80);
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });
const sha = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

const engine = SKIP === false ? await openQuicEngine() : null;
after(() => engine?.[Symbol.asyncDispose]());

for (const [where, memory] of [
  ["on the main thread", undefined],
  ["in a thread of its own", engine?.memory],
] as const)
  describe(`the listener of hysteria2 ${where}`, { skip: SKIP }, () => {
    const openListener = (accept: Accept, options = {}, dialer?: Dialer) =>
      openIn(accept, options, dialer, memory);

    test("streams of a user in both directions, with what rules and accounting read", async () => {
      const sessions: Session[] = [];
      await using listener = await openListener((session) => {
        sessions.push(session);
        echo(session);
      });
      await using node = await openNode(listener.port, { password: "or-me" });
      const bytes = randomBytes(3_000_000);
      const [first, second] = await Promise.all([node.connect(TO, context()), node.connect(TO, context())]);
      const [one, other] = await Promise.all([exchange(first, bytes), exchange(second, Buffer.from("x"))]);
      assert.deepEqual([sha(one), String(other)], [sha(bytes), "x"]);
      const [session] = sessions;
      assert.ok(session !== undefined);
      const { inbound, destination, source } = session.metadata;
      assert.deepEqual(
        [inbound.user, inbound.type, inbound.name, inbound.isRemote],
        ["bob", "Hysteria2", "test-in", true],
      );
      assert.deepEqual([destination, source.ip], [TO, "127.0.0.1"]);
    });

    for (const kind of ["salamander", "gecko"])
      test(`behind ${kind}, with rates of both sides`, async () => {
        const obfs = { obfs: kind, "obfs-password": "obfspass", up: "200 mbps", down: "200 mbps" };
        await using listener = await openListener(echo, obfs);
        await using node = await openNode(listener.port, obfs);
        const bytes = randomBytes(400_000);
        assert.equal(sha(await exchange(await node.connect(TO, context()), bytes)), sha(bytes));
        await using bare = await openNode(listener.port, { "handshake-timeout": 1 });
        await assert.rejects(bare.connect(TO, context()), DialError);
      });

    test("a dial that fails is told in a word", async () => {
      await using listener = await openListener((session) => {
        if (session.network === "tcp") session.reply(new DialError("refused", "nothing of this is told"));
      });
      await using node = await openNode(listener.port);
      const stream = await node.connect(TO, context());
      stream.resume();
      const [error] = await once(stream, "error");
      assert.match(String(error), /the server answers: refused$/);
    });

    test("datagrams, in parts where they are long, each flow for itself", async () => {
      let flows = 0;
      await using listener = await openListener((session) => {
        flows++;
        echo(session);
      });
      await using node = await openNode(listener.port);
      const [near, far] = await Promise.all([node.associate(TO, context()), node.associate(TO, context())]);
      const came: Datagram[] = [];
      near.receive(
        ({ payload, destination }) => void came.push({ payload: Buffer.from(payload), destination }),
      );
      far.receive(
        ({ payload, destination }) => void came.push({ payload: Buffer.from(payload), destination }),
      );
      const long = randomBytes(4000);
      near.send({ payload: long, destination: toDestination("192.0.2.1", 53) });
      far.send({ payload: Buffer.from("short"), destination: toDestination("192.0.2.2", 54) });
      await until("both answers", () => came.length === 2);
      came.sort((a, b) => b.payload.length - a.payload.length);
      assert.deepEqual(
        came.map(({ payload, destination }) => [Buffer.from(payload).toString("hex"), destination.ip]),
        [
          [long.toString("hex"), "192.0.2.1"],
          [Buffer.from("short").toString("hex"), "192.0.2.2"],
        ],
      );
      assert.equal(flows, 2);
    });

    test("a user who is taken away loses the connection at once, and others keep theirs", async () => {
      await using listener = await openListener(echo);
      await using ada = await openNode(listener.port);
      await using bob = await openNode(listener.port, { password: "or-me" });
      const [hers, his] = await Promise.all([ada.connect(TO, context()), bob.connect(TO, context())]);
      for (const stream of [hers, his]) {
        stream.on("error", () => {});
        stream.write("x");
        await once(stream, "data");
      }
      const inbound = listener.inbound as ManagedInbound;
      inbound.replaceUsers([{ id: "bob", credential: "or-me", flow: null }]);
      await until("the end", () => hers.destroyed);
      his.write("y");
      const [still] = await once(his, "data");
      assert.equal(String(still), "y");
      await assert.rejects(
        ada.connect(TO, context()).then((stream) => once(stream, "data")),
        /password is wrong|over/,
      );
    });

    test("a wrong password, none, and a visitor see the same bytes", async () => {
      await using listener = await openListener(echo);
      const client = await visit(listener.port);
      const shape = async (...args: Parameters<typeof ask>) => {
        const { fields, body } = await ask(...args);
        return { body, fields: fields.map(([name, value]) => [name, name === "date" ? "" : value]) };
      };
      const post = { method: "POST", authority: "hysteria" };
      const plain = await shape(client, "/nothing");
      assert.deepEqual(plain.fields[0], [":status", "404"]);
      assert.deepEqual(await shape(client, "/auth", post), plain);
      for (const password of ["", "wrong", "letmei", "letmein2", "\u00e9".repeat(200)])
        assert.deepEqual(
          await shape(client, "/auth", { ...post, fields: [["hysteria-auth", password]] }),
          plain,
        );
      const stream = client.connection.open(true);
      stream?.end(Buffer.from("44010b6f726967696e3a38303a310000", "hex"));
      await assert.rejects(async () => stream === null || (await readAnswer(stream)));
      client.close(0x100);
    });

    test("a folder and a text as masquerade", async () => {
      const folder = mkdtempSync(join(tmpdir(), "masquerade-"));
      try {
        writeFileSync(join(folder, "index.html"), "<h1>home</h1>");
        writeFileSync(join(folder, ".secret"), "hidden");
        await using shown = await openListener(echo, { masquerade: `file://${folder}` });
        const client = await visit(shown.port);
        const home = await ask(client, "/");
        assert.equal(home.body, "<h1>home</h1>");
        const kept = new Map(home.fields);
        assert.deepEqual(
          [kept.get(":status"), kept.get("content-type")],
          ["200", "text/html; charset=utf-8"],
        );
        const since = { fields: [["if-modified-since", kept.get("last-modified") ?? ""]] as const };
        assert.equal(new Map((await ask(client, "/index.html", since)).fields).get(":status"), "304");
        for (const path of ["/.secret", "/../index.html", "/%2e%2e/etc/passwd", "/none", "/%00", "/%zz"])
          assert.equal(new Map((await ask(client, path)).fields).get(":status"), "404", path);
        assert.equal((await ask(client, "/", { method: "HEAD" })).body, "");
        client.close(0x100);

        await using text = await openListener(echo, { masquerade: "data:text/html,<p>hello" });
        const reader = await visit(text.port);
        assert.equal((await ask(reader, "/any")).body, "<p>hello");
        reader.close(0x100);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    test("of a visitor's body that is not read little is taken", async () => {
      const waiting = () => new Promise<never>(() => {});
      const dialer = { connect: waiting, associate: waiting };
      await using listener = await openListener(echo, { masquerade: "http://192.0.2.1" }, dialer);
      const client = await visit(listener.port);
      const stream = client.connection.open(true);
      assert.ok(stream !== null && stream.send !== null);
      const { send } = stream;
      stream.on("error", () => {});
      const fields: Field[] = [
        [":method", "POST"],
        [":scheme", "https"],
        [":authority", "server.test"],
        [":path", "/"],
      ];
      const size = 2 ** 21;
      stream.write(
        Buffer.concat([encodeHeaders(fields), Buffer.from("0080200000", "hex"), Buffer.alloc(size)]),
      );
      await until("what a visitor may send ahead", () => send.ackedBytes > 150_000);
      await delay(300);
      const window = 2 ** 18; // once more for what the buffers on the way took, in pieces of any size
      assert.ok(send.ackedBytes < 2 * window, `${send.ackedBytes} bytes were taken`);
      client.close(0x100);
    });

    test("a site as masquerade: its answers, and 502 where it is not there", async () => {
      const site = createServer((request, response) => {
        const pieces: Buffer[] = [];
        request.on("data", (piece: Buffer) => pieces.push(piece));
        request.on("end", () => {
          response.setHeader("x-path", request.url ?? "");
          response.end(`${request.method} ${request.headers.host} ${Buffer.concat(pieces).toString()}`);
        });
      });
      site.listen(0, "127.0.0.1");
      await once(site, "listening");
      const masquerade = `http://127.0.0.1:${boundAddress(site).port}/base`;
      const dialer = openDirectDialer({ resolver: literalsOnly });
      await using listener = await openListener(echo, { masquerade }, dialer);
      const client = await visit(listener.port);
      const { fields, body } = await ask(client, "/a?b", { method: "POST", body: "sent" });
      assert.equal(body, "POST server.test sent");
      assert.equal(new Map(fields).get("x-path"), "/base/a?b");
      assert.ok(!fields.some(([name]) => name === "connection" || name === "transfer-encoding"));
      site.close();
      site.closeAllConnections();
      assert.equal(new Map((await ask(client, "/")).fields).get(":status"), "502");
      client.close(0x100);
    });
  });
