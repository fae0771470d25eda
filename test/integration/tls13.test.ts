/** The TLS 1.3 engine against the servers of the runtime. */
import assert from "node:assert/strict";
import { createHash, createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Duplex } from "node:stream";
import { createServer, type TlsOptions, type TLSSocket } from "node:tls";
import { PeerAlert, TlsFault } from "#transport/tls13/alerts.ts";
import { CHROME_120, CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { FIREFOX_148 } from "#transport/tls13/fingerprints/firefox.ts";
import { IOS_14, SAFARI_26 } from "#transport/tls13/fingerprints/safari.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { makeCertificate } from "../support/certificate.ts";
import { dial13 } from "../support/tls13-dial.ts";

const own = makeCertificate({ names: ["server.test"] });
const client = makeCertificate({ names: ["client.test"] });

interface Seen {
  readonly cipher: string;
  readonly serverName: string;
  readonly subject: string;
}

interface Server extends AsyncDisposable {
  readonly port: number;
  /** Of the last client. */
  readonly last: () => Seen;
  readonly errors: string[];
}

async function serve(options: TlsOptions, use: (socket: TLSSocket) => void): Promise<Server> {
  const errors: string[] = [];
  let last: Seen | null = null;
  const open = new Set<Duplex>();
  const server = createServer({ cert: own.cert, key: own.key, allowHalfOpen: true, ...options }, (socket) => {
    const { subject } = socket.getPeerCertificate();
    last = {
      cipher: socket.getCipher().name,
      serverName: String(socket.servername),
      subject: String(subject?.CN),
    };
    socket.on("error", (error) => errors.push(error.message));
    use(socket);
  });
  server.on("connection", (socket) => open.add(socket));
  server.on("tlsClientError", (error) => errors.push(error.message));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    last: () => last ?? assert.fail("no client came"),
    errors,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Until its end; unlike an iterator this leaves the stream open. */
function text(stream: Duplex): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let all = "";
  stream
    .on("data", (bytes: Buffer) => (all += String(bytes)))
    .on("end", () => resolve(all))
    .on("error", reject);
  return promise;
}

const echo = (socket: TLSSocket): void => void socket.pipe(socket);
const TEMPLATES: readonly HelloTemplate[] = [CHROME_133, CHROME_120, FIREFOX_148, SAFARI_26, IOS_14];
const SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

for (const template of TEMPLATES)
  for (const ciphers of SUITES)
    test(`${template.name} by ${ciphers}`, async () => {
      await using server = await serve({ ciphers, minVersion: "TLSv1.3" }, echo);
      const { stream } = await dial13(server.port, { template });
      stream.end("hello");
      assert.equal(await text(stream), "hello");
      assert.equal(server.last().cipher, ciphers);
      assert.deepEqual(server.errors, []);
    });

for (const group of ["X25519MLKEM768", "X25519", "P-256", "P-384", "P-521"])
  test(`the server insists on ${group}`, async () => {
    await using server = await serve({ ecdhCurve: group, minVersion: "TLSv1.3" }, echo);
    for (const template of [FIREFOX_148, SAFARI_26]) {
      const { stream } = await dial13(server.port, { template });
      stream.end("hello");
      assert.equal(await text(stream), "hello");
    }
    assert.deepEqual(server.errors, []);
  });

for (const [template, algorithms] of [
  [CHROME_133, ["brotli"]],
  [FIREFOX_148, ["zlib", "brotli", "zstd"]],
  [SAFARI_26, ["zlib"]],
] as const)
  for (const algorithm of algorithms)
    test(`${template.name}: a certificate compressed by ${algorithm}`, async () => {
      const long = { minVersion: "TLSv1.3", cert: own.cert.repeat(8) } as const;
      const bytesOf = async (options: TlsOptions): Promise<number> => {
        await using server = await serve({ ...long, ...options }, (socket) => socket.end("."));
        const { socket, stream } = await dial13(server.port, { template });
        assert.equal(await text(stream), ".");
        assert.deepEqual(server.errors, []);
        return socket.bytesRead;
      };
      const plain = await bytesOf({});
      const compressed = await bytesOf({ certificateCompression: [algorithm] });
      assert.ok(plain - compressed > 1500, `${compressed} bytes where ${plain} were without`);
    });

for (const portable of [false, true])
  test(`8 MiB each way at once${portable ? " by node:crypto" : ""}`, async () => {
    const [up, down] = [randomBytes(8 << 20), randomBytes(8 << 20)];
    const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
    const arrived = Promise.withResolvers<string>();
    await using server = await serve({}, (socket) => {
      const parts: Buffer[] = [];
      socket.on("data", (bytes: Buffer) => parts.push(bytes));
      socket.on("end", () => arrived.resolve(hashOf(Buffer.concat(parts))));
      socket.end(down);
    });
    const { stream } = await dial13(server.port, { portable });
    const parts: Buffer[] = [];
    stream.on("data", (bytes: Buffer) => parts.push(bytes));
    stream.end(up);
    await once(stream, "end");
    assert.equal(hashOf(Buffer.concat(parts)), hashOf(down));
    assert.equal(await arrived.promise, hashOf(up));
  });

test("both agree on a protocol, or on none", async () => {
  await using server = await serve({ ALPNProtocols: ["http/1.1"] }, echo);
  const { connection, stream } = await dial13(server.port);
  assert.equal(connection.agreement?.alpn, "http/1.1");
  stream.destroy();
  await using silent = await serve({}, echo);
  const second = await dial13(silent.port);
  assert.equal(second.connection.agreement?.alpn, null);
  second.stream.end("x");
  assert.equal(await text(second.stream), "x");
  assert.equal(silent.last().serverName, "server.test");
  await using strict = await serve({ ALPNProtocols: ["other"] }, echo);
  await assert.rejects(
    dial13(strict.port),
    (error) => error instanceof PeerAlert && error.description === 120,
  );
});

test("a client certificate is shown where it is asked for", async () => {
  const asks: TlsOptions = {
    requestCert: true,
    rejectUnauthorized: true,
    ca: [client.cert],
    minVersion: "TLSv1.3",
  };
  await using server = await serve(asks, echo);
  const identity = { chain: [new X509Certificate(client.cert).raw], key: createPrivateKey(client.key) };
  const { stream } = await dial13(server.port, { identity });
  stream.end("hello");
  assert.equal(await text(stream), "hello");
  assert.equal(server.last().subject, "client.test");
  const without = await dial13(server.port);
  await assert.rejects(text(without.stream), (error) => error instanceof PeerAlert);
});

test("the server speaks first, and each side may end alone", async () => {
  const said = Promise.withResolvers<string>();
  await using server = await serve({}, (socket) => {
    socket.end("welcome");
    void text(socket).then(said.resolve);
  });
  const { stream } = await dial13(server.port);
  assert.equal(await text(stream), "welcome");
  stream.end("late");
  assert.equal(await said.promise, "late");
});

test("a reader that does not read holds the server back", async () => {
  const bytes = 64 << 20;
  await using server = await serve({}, (socket) => socket.end(Buffer.alloc(bytes)));
  const { stream, socket } = await dial13(server.port);
  await once(stream, "readable");
  const before = socket.bytesRead;
  assert.ok(before < bytes / 4, `${before} bytes were read ahead`);
  let got = 0;
  for await (const part of stream) got += (part as Buffer).length;
  assert.equal(got, bytes);
});

test("a server that speaks TLS 1.2 alone is recognised", async () => {
  await using server = await serve({ maxVersion: "TLSv1.2" }, echo);
  await assert.rejects(dial13(server.port), /no TLS 1\.3/);
  await assert.rejects(dial13(server.port), (error) => error instanceof TlsFault);
});

test("a refused server gets an alert and no other byte", async () => {
  await using server = await serve({}, (socket) => socket.end("secret"));
  const judge = (): never => {
    throw new TlsFault("bad_certificate", "not this one");
  };
  await assert.rejects(dial13(server.port, { judge }), /not this one/);
  while (server.errors.length === 0) await new Promise(setImmediate);
  assert.match(server.errors[0] ?? "", /bad certificate/i);
});

test("a hundred connections in a row", async () => {
  await using server = await serve({}, echo);
  for (let left = 100; left > 0; left--) {
    const { stream } = await dial13(server.port, { template: CHROME_120 });
    stream.end("x");
    assert.equal(await text(stream), "x");
  }
});
