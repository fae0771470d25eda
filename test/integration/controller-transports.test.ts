/** TLS with its client certificates and changing files, Unix sockets, and what a failed bind costs. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";
import { WebSocket } from "ws";
import { openController } from "#api/open-controller.ts";
import type { ClientAuthType, TlsOptions } from "#api/tls.ts";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT, type Log, type LogText } from "#core/log.ts";
import { OPEN_OPTIONS } from "../support/api-app.ts";
import { makeCertificate, type TestCertificate } from "../support/certificate.ts";
import { liveController } from "../support/live-controller.ts";
import { MemoryControl } from "../support/memory-control.ts";

/** Files in memory that tests can change. */
class MemoryFiles implements SafeFiles {
  readonly texts = new Map<string, string>();
  readonly #watches = new Set<() => void>();

  resolve(path: string): string {
    return path;
  }

  async readPem(name: string): Promise<string> {
    return this.texts.get(name) ?? name;
  }

  watchPem(name: string, on: (pem: string) => void): Disposable {
    const watch = () => on(this.texts.get(name) ?? name);
    this.#watches.add(watch);
    return { [Symbol.dispose]: () => void this.#watches.delete(watch) };
  }

  write(name: string, text: string): void {
    this.texts.set(name, text);
    for (const watch of this.#watches) watch();
  }

  get watchCount(): number {
    return this.#watches.size;
  }
}

const authority = makeCertificate({ names: ["test authority"], ca: true });
const server = makeCertificate({ names: ["127.0.0.1"], issuer: authority });
const friend = makeCertificate({ names: ["friend"], issuer: authority });
const untrusted = makeCertificate({ names: ["untrusted"] });

async function openTls(tls: Partial<TlsOptions> = {}, files = new MemoryFiles(), log: Log = SILENT) {
  files.texts.set("cert.pem", server.cert);
  files.texts.set("key.pem", server.key);
  const common = {
    certificate: "cert.pem",
    privateKey: "key.pem",
    clientAuthType: "",
    clientAuthCert: "",
    files,
  } as const;
  const https = { host: "127.0.0.1", port: 0, tls: { ...common, ...tls } };
  const live = await liveController({ listeners: { https } }, log);
  return { ...live, files, tlsPort: live.controller.endpoints[0]?.port ?? 0 };
}

/** The status of GET /version and the name of the server's certificate, or the error's code. */
async function ask(
  port: number,
  options: ConnectionOptions = {},
): Promise<readonly [number | string, string]> {
  const { promise, resolve } = Promise.withResolvers<readonly [number | string, string]>();
  const asking = request({
    host: "127.0.0.1",
    port,
    path: "/version",
    ca: authority.cert,
    agent: false,
    ...options,
  });
  asking.on("response", (response) => {
    response.resume();
    const { socket } = response as unknown as {
      socket: { getPeerCertificate(): { fingerprint256: string } };
    };
    resolve([response.statusCode ?? 0, socket.getPeerCertificate().fingerprint256]);
  });
  asking.on("error", (error: NodeJS.ErrnoException) => resolve([error.code ?? error.message, ""]));
  asking.end();
  return promise;
}

test("HTTPS speaks HTTP/1.1 and HTTP/2, WebSockets over the former", async () => {
  await using live = await openTls();
  assert.equal((await ask(live.tlsPort))[0], 200);
  const session = connectHttp2(`https://127.0.0.1:${live.tlsPort}`, { ca: authority.cert });
  const get = async (path: string, method = "GET", body?: string) => {
    const stream = session.request({ ":path": path, ":method": method });
    stream.end(body);
    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) text += chunk;
    return [headers[":status"], text] as const;
  };
  assert.match((await get("/version"))[1], /"meta":true/);
  assert.equal((await get("/proxies/Proxy", "PUT", '{"name":"a/b"}'))[0], 204);
  assert.equal(live.control.groups.get("Proxy")?.now, "a/b");
  assert.equal((await get("/configs", "PATCH", "x".repeat(1_048_577)))[0], 413);
  assert.equal((await get("/version", "POST"))[0], 405);
  const logs = session.request({ ":path": "/logs" });
  await once(logs, "response");
  live.control.emit("info", "over HTTP/2");
  const [line] = (await once(logs, "data")) as [Buffer];
  assert.equal(line.toString(), '{"type":"info","payload":"over HTTP/2"}\n');
  session.destroy();
  const socket = new WebSocket(`wss://127.0.0.1:${live.tlsPort}/connections`, { ca: authority.cert });
  const [first] = (await once(socket, "message")) as [Buffer];
  assert.match(first.toString(), /"connections":\[\]/);
  socket.terminate();
});

test("HTTP/2: a head over 16 KiB and two names of the host are refused, as over HTTP/1.1", async () => {
  await using live = await openTls();
  const origin = `https://127.0.0.1:${live.tlsPort}`;
  const session = connectHttp2(origin, { ca: authority.cert });
  const status = async (headers: Record<string, string>): Promise<unknown> => {
    const stream = session.request({ ":path": "/version", ...headers });
    stream.end();
    return once(stream, "response").then(
      ([answer]) => (answer as Record<string, unknown>)[":status"],
      (error: Error) => error.message,
    );
  };
  assert.equal(await status({ x: "x".repeat(15_000) }), 200);
  assert.match(String(await status({ x: "x".repeat(17_000) })), /ENHANCE_YOUR_CALM/);
  assert.equal(await status({ ":authority": "evil.example", host: "127.0.0.1" }), 400);
  assert.equal(await status({ ":authority": "127.0.0.1", host: "127.0.0.1" }), 200);
  session.destroy();
});

const CLIENTS = { none: null, friend, untrusted };
const ADMITTED: Readonly<Record<ClientAuthType, readonly (keyof typeof CLIENTS)[]>> = {
  "": ["none", "friend", "untrusted"],
  request: ["none", "friend", "untrusted"],
  "require-any": ["friend", "untrusted"],
  "verify-if-given": ["none", "friend"],
  "require-and-verify": ["friend"],
};

test("client certificates: every type admits the right clients, TLS 1.2 and 1.3", async () => {
  for (const [type, admitted] of Object.entries(ADMITTED)) {
    const clientAuthCert = type === "" ? "" : authority.cert;
    await using live = await openTls({ clientAuthType: type as ClientAuthType, clientAuthCert });
    for (const [name, client] of Object.entries(CLIENTS)) {
      const identity = client === null ? {} : { cert: client.cert, key: client.key };
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
        const [status] = await ask(live.tlsPort, { ...identity, maxVersion });
        const isAdmitted = admitted.includes(name as keyof typeof CLIENTS);
        assert.equal(status === 200, isAdmitted, `${type}: ${name} over ${maxVersion}: ${status}`);
      }
    }
  }
});

test("a client CA without a type means require-and-verify", async () => {
  await using live = await openTls({ clientAuthCert: authority.cert });
  assert.notEqual((await ask(live.tlsPort))[0], 200);
  assert.equal((await ask(live.tlsPort, { cert: friend.cert, key: friend.key }))[0], 200);
});

test("a changed certificate serves new connections; a pair that does not fit changes nothing", async () => {
  await using live = await openTls();
  const before = await ask(live.tlsPort);
  const next = makeCertificate({ names: ["127.0.0.1"], issuer: authority });
  live.files.write("cert.pem", next.cert); // the key still is the old one
  assert.deepEqual(await ask(live.tlsPort), before);
  live.files.write("key.pem", next.key);
  let now = await ask(live.tlsPort);
  while (now[1] === before[1]) now = await ask(live.tlsPort);
  assert.equal(now[0], 200);
  await live[Symbol.asyncDispose]();
  assert.equal(live.files.watchCount, 0);
});

test("of two changes of a certificate the later one stays, however long the earlier one takes to read", async () => {
  const files = new MemoryFiles();
  const inUse = Promise.withResolvers<void>();
  let loads = 0;
  const info = (text: LogText): void => {
    if (String(text).includes("new TLS certificate") && ++loads === 4) inUse.resolve();
  };
  await using live = await openTls({}, files, { ...SILENT, info });
  const read = files.readPem.bind(files);
  const slow = Promise.withResolvers<void>();
  let reads = 0;
  files.readPem = async (name) => {
    const pem = await read(name);
    if (++reads <= 2) await slow.promise; // the pair of the first load
    return pem;
  };
  const [first, second] = [0, 1].map(() => makeCertificate({ names: ["127.0.0.1"], issuer: authority }));
  for (const { cert, key } of [first, second] as TestCertificate[]) {
    files.texts.set("key.pem", key);
    files.write("cert.pem", cert); // both files are watched: two loads
  }
  await setImmediate();
  slow.resolve();
  await inUse.promise;
  const { fingerprint256 } = new X509Certificate((second as TestCertificate).cert);
  assert.deepEqual(await ask(live.tlsPort), [200, fingerprint256]);
});

test("a TLS client that sends nothing or nonsense disturbs no other", async () => {
  await using live = await openTls();
  const nonsense = httpRequest({ host: "127.0.0.1", port: live.tlsPort, agent: false });
  nonsense.end();
  await once(nonsense, "error");
  assert.equal((await ask(live.tlsPort))[0], 200);
});

test("over TLS, too, an upgrade to something else than a WebSocket is answered as a plain request", async () => {
  await using live = await openTls();
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  const headers = { connection: "upgrade", upgrade: "h2c" };
  const common = { host: "127.0.0.1", port: live.tlsPort, ca: authority.cert, agent: false } as const;
  request({ ...common, method: "PUT", path: "/storage/x", headers }, resolve).end("[1]");
  const answer = await promise;
  assert.deepEqual([answer.statusCode, answer.headers.connection], [204, "keep-alive"]);
  answer.destroy();
});

const isWindows = process.platform === "win32";

function askUnix(socketPath: string, headers: Record<string, string> = {}): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const asking = httpRequest({ socketPath, path: "/version", headers, agent: false });
  asking.on("response", (response) => resolve(response.resume().statusCode ?? 0));
  asking.on("error", reject);
  asking.end();
  return promise;
}

test(
  "a Unix socket: its folder is made, only the owner may use it, the secret counts, nothing is left",
  { skip: isWindows && "Windows has pipes" },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "weir-unix-"));
    const path = join(folder, "run", "weir.sock");
    const open = (secret: string) =>
      openController({ ...OPEN_OPTIONS, secret, listeners: { unix: { path } } }, new MemoryControl(), SILENT);
    {
      await using controller = await open("s");
      assert.deepEqual(controller.endpoints, [{ kind: "unix", text: path, port: 0 }]);
      assert.equal((await stat(path)).mode & 0o777, 0o600);
      assert.equal((await stat(join(folder, "run"))).mode & 0o777, 0o700);
      assert.equal(await askUnix(path), 401);
      assert.equal(await askUnix(path, { authorization: "Bearer s" }), 200);
      await using second = await open("s");
      assert.deepEqual(second.endpoints, []);
      assert.equal(await askUnix(path, { authorization: "Bearer s" }), 200);
    }
    await assert.rejects(stat(path));
    await using unprotected = await open("");
    assert.equal(unprotected.endpoints.length, 1);
    assert.equal(await askUnix(path, { host: "anything" }), 200);
    await rm(folder, { recursive: true });
  },
);

test(
  "the socket of a dead process is replaced; a file that is no socket is not",
  { skip: isWindows && "Windows has pipes" },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "weir-unix-"));
    const stale = join(folder, "stale.sock");
    const moved = join(folder, "moved.sock");
    const dead = createServer().listen(moved);
    await once(dead, "listening");
    await rename(moved, stale); // closing removes the old name only, as a killed process would
    dead.close();
    await writeFile(join(folder, "file"), "mine");
    await symlink(join(folder, "file"), join(folder, "link"));
    const open = (path: string) =>
      openController({ ...OPEN_OPTIONS, listeners: { unix: { path } } }, new MemoryControl(), SILENT);
    {
      await using controller = await open(stale);
      assert.equal(controller.endpoints.length, 1);
      assert.equal(await askUnix(stale), 200);
    }
    for (const name of ["file", "link"]) {
      await using controller = await open(join(folder, name));
      assert.equal(controller.endpoints.length, 0, name);
    }
    assert.equal((await stat(join(folder, "file"))).size, 4);
    await rm(folder, { recursive: true });
  },
);

test(
  "the socket of a process that is too busy to accept is not taken from it",
  { skip: process.platform !== "linux" && "only Linux tells a full queue from a missing listener" },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "weir-unix-"));
    const path = join(folder, "busy.sock");
    const program =
      "require('net').createServer().listen({ path: process.argv[1], backlog: 1 }, () => console.log())";
    const busy = spawn(process.execPath, ["-e", program, path]);
    await once(busy.stdout, "data");
    busy.kill("SIGSTOP");
    const waiting: Socket[] = [];
    let refusal: NodeJS.ErrnoException | null = null;
    while (refusal === null) {
      const client = connect(path);
      waiting.push(client);
      refusal = await once(client, "connect").then(
        () => null,
        (error: NodeJS.ErrnoException) => error,
      );
    }
    assert.equal(refusal.code, "EAGAIN");
    const { ino } = await stat(path);
    await using controller = await openController(
      { ...OPEN_OPTIONS, listeners: { unix: { path } } },
      new MemoryControl(),
      SILENT,
    );
    assert.equal(controller.endpoints.length, 0);
    assert.equal((await stat(path)).ino, ino);
    for (const client of waiting) client.destroy();
    busy.kill("SIGKILL");
    await once(busy, "exit");
    await rm(folder, { recursive: true });
  },
);

test("a failed bind is logged and the others go on", async () => {
  const lines: string[] = [];
  const log = { ...SILENT, error: (text: unknown) => void lines.push(String(text)) };
  await using taken = await liveController();
  const listeners = { http: { host: "127.0.0.1", port: taken.port }, pipe: { name: "not a pipe" } };
  await using live = await liveController({ listeners }, log);
  assert.equal(live.controller.endpoints.length, 0);
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /cannot listen on http 127\.0\.0\.1:\d+: .*EADDRINUSE/);
  await using named = await liveController(
    { secret: "s", listeners: { http: { host: "router.lan", port: 0 } } },
    log,
  );
  assert.equal(named.controller.endpoints.length, 0);
  assert.match(lines[2] ?? "", /expected an address/);
});

test("an empty secret opens nothing to other machines", async () => {
  for (const host of ["", "0.0.0.0", "::", "192.0.2.1"]) {
    const opening = liveController({ listeners: { http: { host, port: 0 } } });
    await assert.rejects(opening, ConfigError, host);
  }
  await using everywhere = await liveController({ secret: "s", listeners: { http: { host: "", port: 0 } } });
  const headers = { authorization: "Bearer s" };
  assert.equal((await fetch(`http://127.0.0.1:${everywhere.port}/version`, { headers })).status, 200);
});

test("the caller may do the listening", async () => {
  const asked: string[] = [];
  const listen = async (socket: Server, host: string, port: number) => {
    asked.push(`${host}:${port}`);
    socket.listen(port, host);
    await once(socket, "listening");
  };
  await using live = await liveController({ listeners: { http: { host: "localhost", port: 0, listen } } });
  assert.deepEqual(asked, ["127.0.0.1:0"]);
  assert.equal((await fetch(`${live.url}/version`)).status, 200);
});
