import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { constants, createSecureServer, type Http2ServerResponse } from "node:http2";
import { createServer as createTcp, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { createServer as createTls } from "node:tls";
import { frameOf, FrameReader } from "#dns/frames.ts";
import { decodeMessage, encodeMessage, type Message } from "#dns/message.ts";
import { withClientSubnet } from "#dns/edns.ts";
import { encodeQuestion, QueryReader } from "#dns/query.ts";
import { UpstreamPool } from "#dns/upstream/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { until } from "../support/until.ts";
import { address, always, ENV, HOST, openScripted, openTestDns, reply, server } from "./dns-kit.ts";

const signal = () => AbortSignal.timeout(6000);
const { cert, key } = makeCertificate();

interface Peer extends AsyncDisposable {
  readonly port: number;
  readonly connections: Socket[];
  readonly asked: Message[];
}

async function listening(peer: Server, connections: Socket[], asked: Message[]): Promise<Peer> {
  peer.on("connection", (socket: Socket) => {
    socket.on("error", () => {});
    connections.push(socket);
  });
  peer.listen(0, HOST);
  await once(peer, "listening");
  const { port } = peer.address() as { port: number };
  const close = async () => {
    peer.close();
    for (const socket of connections) socket.destroy();
  };
  return { port, connections, asked, [Symbol.asyncDispose]: close };
}

const answerTo = (query: Message) =>
  reply(query, [
    address(query.questions[0]?.name ?? "", query.questions[0]?.type === 28 ? "2001:db8::1" : "192.0.2.1"),
  ]);

/** Length-prefixed DNS. `hold` answers in the reverse order of arrival once that many came. */
function streamPeer(tls: boolean, hold = 1): Promise<Peer> {
  const asked: Message[] = [];
  const serve = (socket: Socket) => {
    const waiting: Message[] = [];
    const frames = new FrameReader((frame) => {
      const query = decodeMessage(frame);
      asked.push(query);
      waiting.unshift(query);
      if (waiting.length < hold) return;
      for (const each of waiting.splice(0)) socket.write(frameOf(encodeMessage(answerTo(each))));
    });
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => frames.push(chunk));
  };
  const peer = tls ? createTls({ cert, key }, serve) : createTcp(serve);
  return listening(peer, [], asked);
}

type HttpKind = "h2" | "h1" | "clear";

function httpPeer(kind: HttpKind, answer = answerTo): Promise<Peer & { readonly seen: IncomingMessage[] }> {
  const asked: Message[] = [];
  const seen: IncomingMessage[] = [];
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    seen.push(request);
    const url = new URL(request.url ?? "", "http://x");
    const query = decodeMessage(Buffer.from(url.searchParams.get("dns") ?? "", "base64url"));
    asked.push(query);
    response.setHeader("content-type", "application/dns-message");
    response.end(encodeMessage(answer(query)));
  };
  const peer =
    kind === "clear"
      ? createHttp1(serve)
      : kind === "h1"
        ? createHttps({ cert, key }, serve)
        : createSecureServer({ cert, key }, serve as never);
  return listening(peer as Server, [], asked).then((made) => ({ ...made, seen }));
}

for (const scheme of ["tcp", "tls"] as const) {
  test(`${scheme}: one connection carries many questions, answered in any order`, async () => {
    await using peer = await streamPeer(scheme === "tls", 2);
    const nameserver = [server(`${scheme}://${HOST}:${peer.port}#skip-cert-verify=true`)];
    await using dns = await openTestDns({ nameserver, ipv6TimeoutMs: 5000 });
    for (const name of ["a.org", "b.org", "c.org"]) {
      const found = await dns.resolver.lookup(name, { signal: signal() });
      assert.deepEqual(
        found.map(({ ip }) => ip),
        ["192.0.2.1", "2001:db8::1"],
      );
    }
    assert.equal(peer.connections.length, 1);
  });

  test(`${scheme}: a connection that died while it was idle costs nothing`, async () => {
    await using peer = await streamPeer(scheme === "tls");
    const nameserver = [server(`${scheme}://${HOST}:${peer.port}#skip-cert-verify=true`)];
    await using dns = await openTestDns({ nameserver, ipv6: false });
    await dns.resolver.lookup("a.org", { signal: signal() });
    peer.connections[0]?.resetAndDestroy();
    await dns.resolver.lookup("b.org", { signal: signal() });
    assert.equal(peer.connections.length, 2);
  });
}

for (const scheme of ["tcp", "tls"] as const)
  test(`${scheme}: a server that answers one question of each connection and closes it answers all`, async () => {
    const serve = (socket: Socket) => {
      const frames = new FrameReader((frame) => {
        if (socket.writable) socket.end(frameOf(encodeMessage(answerTo(decodeMessage(frame)))));
      });
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => frames.push(chunk));
    };
    const made = scheme === "tls" ? createTls({ cert, key }, serve) : createTcp(serve);
    await using peer = await listening(made, [], []);
    const nameserver = [server(`${scheme}://${HOST}:${peer.port}#skip-cert-verify=true`)];
    await using dns = await openTestDns({ nameserver, ipv6TimeoutMs: 5000 });
    const names = Array.from({ length: 8 }, (_, at) => `n${at}.org`);
    const found = await Promise.all(names.map((name) => dns.resolver.lookup(name, { signal: signal() })));
    assert.deepEqual(
      found.map((answers) => answers.length),
      names.map(() => 2),
    );
  });

/** Asks upstreams without the cache and the deadline of a set. */
function openUpstream(text: string) {
  const pool = new UpstreamPool(ENV);
  const upstream = pool.open(server(text), {
    lookup: () => Promise.reject(new Error("only addresses here")),
  });
  const ask = async (name: string, until = signal()) =>
    decodeMessage(await upstream.exchange(encodeQuestion(name, 1), until));
  return { ask, [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose]() };
}

test("tcp: on a connection that fell silent no question waits behind the first that timed out", async () => {
  const accepted: Socket[] = [];
  const peer = createTcp((socket) => {
    const isFirst = accepted.length === 0;
    let answered = 0;
    const frames = new FrameReader((frame) => {
      if (isFirst && answered++ > 0) return;
      socket.write(frameOf(encodeMessage(answerTo(decodeMessage(frame)))));
    });
    socket.on("data", (chunk: Buffer) => frames.push(chunk));
    accepted.push(socket);
  });
  await using made = await listening(peer, [], []);
  await using upstream = openUpstream(`tcp://${HOST}:${made.port}`);
  await upstream.ask("a.org");
  const patient = upstream.ask("b.org");
  await assert.rejects(upstream.ask("c.org", AbortSignal.timeout(2100)), /timeout/);
  assert.equal((await patient).answers.length, 1);
  assert.equal(accepted.length, 2);
});

test("tls: a server that never shakes hands holds a connection for five seconds", async () => {
  await using mute = await listening(createTcp(), [], []);
  await using upstream = openUpstream(`tls://${HOST}:${mute.port}`);
  const why = new RegExp(`no connection to tls://${HOST}:${mute.port} within 5000 ms`);
  await assert.rejects(upstream.ask("a.org", AbortSignal.timeout(20_000)), why);
  void upstream.ask("b.org").catch(() => {});
  await until("it is dialled anew", () => mute.connections.length === 2);
});

for (const scheme of ["tcp", "tls", "https"])
  test(`${scheme}: another network means another connection, also for a question under way`, async () => {
    await using plain = scheme === "https" ? await httpPeer("h2") : await streamPeer(scheme === "tls", 2);
    const nameserver = [server(`${scheme}://${HOST}:${plain.port}#skip-cert-verify=true`)];
    await using dns = await openTestDns({ nameserver, ipv6: scheme !== "https" });
    await dns.resolver.lookup("a.org", { signal: signal() });
    const [first] = plain.connections;
    const waiting = scheme === "https" ? null : dns.resolver.lookup("b.org", { family: 4, signal: signal() });
    if (waiting !== null) await until("it is asked", () => plain.asked.length === 3);
    dns.networkChanged();
    await dns.resolver.lookup("c.org", { family: scheme === "https" ? 4 : 6, signal: signal() });
    await waiting;
    await until("the first is closed", () => first?.destroyed === true);
    assert.equal(plain.connections.length, 2);
  });

test("disable-reuse closes after each question", async () => {
  await using peer = await streamPeer(true);
  const nameserver = [server(`tls://${HOST}:${peer.port}#skip-cert-verify=true&disable-reuse=true`)];
  await using dns = await openTestDns({ nameserver, ipv6: false });
  for (const name of ["a.org", "b.org"]) await dns.resolver.lookup(name, { signal: signal() });
  assert.equal(peer.connections.length, 2);
});

test("tls and https verify the certificate; name-cert-verify checks another name", async () => {
  await using dot = await streamPeer(true);
  await using doh = await httpPeer("h2");
  for (const text of [`tls://${HOST}:${dot.port}`, `https://${HOST}:${doh.port}/dns-query`]) {
    await using dns = await openTestDns({ nameserver: [server(text)], ipv6: false });
    await assert.rejects(dns.resolver.lookup("a.org", { signal: signal() }), /certificate/);
  }
  assert.equal(dot.asked.length + doh.asked.length, 0);
});

for (const kind of ["h2", "h1", "clear"] as const) {
  test(`https (${kind}): GET with id 0, one connection for many questions`, async () => {
    await using peer = await httpPeer(kind);
    const scheme = kind === "clear" ? "http" : "https";
    const text = `${scheme}://me:secret@${HOST}:${peer.port}/dns-query?x=1#skip-cert-verify=true`;
    await using dns = await openTestDns({ nameserver: [server(text)], ipv6: false });
    for (const name of ["a.org", "b.org", "c.org"]) {
      const [first] = await dns.resolver.lookup(name, { signal: signal() });
      assert.equal(first?.ip, "192.0.2.1");
    }
    assert.equal(peer.connections.length, 1);
    for (const request of peer.seen) {
      assert.equal(request.method, "GET");
      assert.match(request.url ?? "", /^\/dns-query\?dns=[A-Za-z0-9_-]+$/);
      assert.equal(request.headers.accept, "application/dns-message");
      assert.equal(request.headers["user-agent"], undefined);
      assert.equal(request.headers.authorization, `Basic ${Buffer.from("me:secret").toString("base64")}`);
    }
    assert.ok(peer.asked.every(({ id }) => id === 0));
  });

  test(`https (${kind}): a kept client whose connection died is built anew`, async () => {
    await using peer = await httpPeer(kind);
    const scheme = kind === "clear" ? "http" : "https";
    const text = `${scheme}://${HOST}:${peer.port}/q#skip-cert-verify=true`;
    await using dns = await openTestDns({ nameserver: [server(text)], ipv6: false });
    await dns.resolver.lookup("a.org", { signal: signal() });
    peer.connections[0]?.resetAndDestroy();
    await dns.resolver.lookup("b.org", { signal: signal() });
    assert.equal(peer.connections.length, 2);
  });
}

test("https: an answer with another id or to another question fails", async () => {
  for (const spoil of [
    (query: Message) => ({ ...answerTo(query), id: 5 }),
    (query: Message) => ({ ...answerTo(query), questions: [{ name: "evil.org", type: 1, class: 1 }] }),
  ]) {
    await using peer = await httpPeer("h2", spoil);
    const text = `https://${HOST}:${peer.port}/q#skip-cert-verify=true`;
    await using dns = await openTestDns({ nameserver: [server(text)], ipv6: false });
    await assert.rejects(dns.resolver.lookup("a.org", { signal: signal() }), /another/);
  }
});

test("https: any other status than 200, and a body without end, are errors", async () => {
  const endless = (_: IncomingMessage, response: ServerResponse) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384)));
    };
    response.on("drain", more);
    more();
  };
  const failing = (_: IncomingMessage, response: ServerResponse) => void response.writeHead(503).end();
  for (const [serve, why] of [
    [failing, /status 503/],
    [endless, /more than one DNS message/],
  ] as const) {
    for (const http of [createHttp1(serve), createSecureServer({ cert, key }, serve as never)]) {
      await using peer = await listening(http as Server, [], []);
      const scheme = "maxHeadersCount" in http ? "http" : "https";
      const text = `${scheme}://${HOST}:${peer.port}/q#skip-cert-verify=true`;
      await using dns = await openTestDns({ nameserver: [server(text)], ipv6: false });
      await assert.rejects(dns.resolver.lookup("a.org", { signal: signal() }), why);
    }
  }
});

for (const [what, refuse, why] of [
  ["a question that the server refuses", (response) => void response.writeHead(400).end(), /status 400/],
  ["a question whose stream is reset", ({ stream }) => stream.close(constants.NGHTTP2_INTERNAL_ERROR), /./],
] as readonly [string, (response: Http2ServerResponse) => void, RegExp][])
  test(`https: ${what} costs the others nothing`, async () => {
    const held: (() => void)[] = [];
    const asked: string[] = [];
    const http = createSecureServer({ cert, key }, (request, response) => {
      const url = new URL(request.url, "http://x");
      const query = decodeMessage(Buffer.from(url.searchParams.get("dns") ?? "", "base64url"));
      asked.push(query.questions[0]?.name ?? "");
      if (asked.at(-1) === "refused.org") refuse(response);
      else held.push(() => response.end(encodeMessage(answerTo(query))));
    });
    await using peer = await listening(http as unknown as Server, [], []);
    await using upstream = openUpstream(`https://${HOST}:${peer.port}/q#skip-cert-verify=true`);
    const slow = upstream.ask("slow.org");
    await until("the first is asked", () => held.length === 1);
    await assert.rejects(upstream.ask("refused.org"), why);
    for (const answer of held) answer();
    assert.equal((await slow).answers.length, 1);
    assert.deepEqual(
      asked.filter((name) => name === "slow.org"),
      ["slow.org"],
    );
  });

test("https: a question that is given up does not wait for the dial", async () => {
  await using mute = await listening(createTcp(), [], []);
  await using upstream = openUpstream(`https://${HOST}:${mute.port}/q`);
  const timeouts = new AbortController();
  const asked = upstream.ask("a.org", timeouts.signal);
  await until("it is dialled", () => mute.connections.length === 1);
  timeouts.abort(new Error("the question was given up"));
  await assert.rejects(asked, /the question was given up/);
});

test("dns.md §16.10 the subnet goes to the one server that has it; kept or replaced as configured", async () => {
  await using plain = await openScripted(() => null);
  await using withEcs = await openScripted(always("192.0.2.1"));
  const text = `udp://${HOST}:${withEcs.port}#ecs=203.0.113.77/20`;
  await using dns = await openTestDns({
    nameserver: [server(`udp://${HOST}:${plain.port}`), server(text)],
    ipv6: false,
  });
  await dns.resolver.lookup("example.org", { signal: signal() });
  assert.deepEqual(plain.asked[0]?.additionals, []);
  const [opt] = withEcs.asked[0]?.additionals ?? [];
  assert.equal(opt?.type, 41);
  // code 8, length 7, family 1, prefix 20, scope 0, three bytes with the rest zeroed
  assert.equal(Buffer.from(opt?.data ?? []).toString("hex"), "00080007000114 00cb0070".replace(" ", ""));

  const reader = new QueryReader();
  const own = { ip: "2001:db8:ffff::1", bits: 33 } as Parameters<typeof withClientSubnet>[1];
  const asked = reader.read(encodeMessage(withEcs.asked[0] as Message));
  assert.ok(asked !== null);
  const kept = decodeMessage(withClientSubnet(asked, own, false)).additionals[0];
  assert.deepEqual(kept?.data, opt?.data);
  const replaced = decodeMessage(withClientSubnet(asked, own, true)).additionals[0];
  assert.equal(
    Buffer.from(replaced?.data ?? []).toString("hex"),
    "00080009000221 0020010db880".replace(" ", ""),
  );
});

test("disabled types are answered empty without asking, and their records are taken out", async () => {
  await using peer = await openScripted((query) => {
    const name = query.questions[0]?.name ?? "";
    return reply(query, [address(name, "192.0.2.1"), address(name, "2001:db8::1")]);
  });
  const text = `udp://${HOST}:${peer.port}#disable-ipv6=true&disable-qtype-65=true`;
  await using dns = await openTestDns({ nameserver: [server(text)] });
  const [v6, https, v4] = await Promise.all(
    [28, 65, 1].map((type) => dns.query("example.org.", type, signal())),
  );
  assert.deepEqual([v6?.status, v6?.answers, https?.answers], [0, [], []]);
  assert.deepEqual(
    v4?.answers.map(({ data }) => data),
    ["192.0.2.1"],
  );
  assert.equal(peer.asked.length, 1);
});

test("servers that need QUIC are left out where there is none; a list of nothing else fails its questions", async () => {
  const hasQuic = () => false;
  const quic = server("quic://192.0.2.1");
  const warnings: string[] = [];
  const log = {
    debug() {},
    info() {},
    error() {},
    warning: (text: unknown) => void warnings.push(String(text)),
  };
  await using alone = await openTestDns({ nameserver: [quic] }, { log, hasQuic });
  const reply = await alone.query("a.org.", 1, signal());
  assert.deepEqual([reply?.status, reply?.answers], [2, []]);
  assert.match(warnings.join("\n"), /dns\.nameserver: quic:\/\/192\.0\.2\.1:853 is left out: .*tls:\/\//);
  assert.match(warnings.join("\n"), /dns\.nameserver: no server of the list can be used/);
  warnings.length = 0;
  await using mixed = await openTestDns({ nameserver: [quic, server("192.0.2.2")] }, { log, hasQuic });
  assert.deepEqual(mixed.explain("a.org").servers, ["udp://192.0.2.2:53"]);
  assert.deepEqual(warnings.length, 1);
  assert.match(warnings[0] ?? "", /dns\.nameserver: quic:\/\/192\.0\.2\.1:853 is left out/);
});
