/** What clients of other protocols see, and web tools as peers of the transports. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { promisify } from "node:util";
import { connect as tlsConnect } from "node:tls";
import { describe, test } from "node:test";
import type { Accept, ManagedInbound } from "#core/inbound.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { openTlsClient } from "#transport/tls/node-client.ts";
import { readAll } from "../support/client.ts";
import { directAccept, directDialer } from "../support/direct-accept.ts";
import { exchange } from "../support/exchange.ts";
import { openInboundEnv } from "../support/inbound-env.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { startPeerWithFiles } from "../support/peer-folder.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { openWebOrigin } from "../support/web-origin.ts";
import { certificate, clientTls, password, serverTls, uuid } from "../support/tls-sides.ts";

const run = promisify(execFile);

const openWeb = () =>
  openWebOrigin((request, response) => void response.end(`web ${request.method} ${request.url}`));

const nothing: Accept = () => assert.fail("no client has authenticated");

async function openBehind(protocol: typeof vless, options: object) {
  const env = { ...openInboundEnv({ accept: nothing }), dialer: directDialer };
  const side = protocol.inbound as unknown as {
    schema: { parse(raw: object): object };
    open(options: object, environment: object): Promise<ManagedInbound>;
  };
  const inbound = await side.open(side.schema.parse(options), env);
  return {
    port: inbound.endpoints[0]?.port as number,
    async [Symbol.asyncDispose]() {
      await inbound[Symbol.asyncDispose]();
      await env[Symbol.asyncDispose]();
    },
  };
}

const kinds = [
  [vless, { users: [{ uuid }] }],
  [trojan, { users: [{ password }] }],
] as const;

for (const [protocol, users] of kinds) {
  test(`${protocol.type}: a browser finds the web server behind it`, { skip: missing("curl") }, async () => {
    await using web = await openWeb();
    await using server = await openBehind(protocol, {
      ...serverTls,
      ...users,
      fallbacks: [{ dest: web.port }],
    });
    const url = `https://127.0.0.1:${server.port}/page`;
    const args = ["-sk", "--http1.1", "--max-time", "10"];
    assert.equal((await run("curl", [...args, url])).stdout, "web GET /page");
    const posted = await run("curl", [...args, "-d", "x".repeat(100_000), url]);
    assert.equal(posted.stdout, "web POST /page");
  });

  test(`${protocol.type}: wrong credentials reach the fallback with every byte; without one nothing is said`, async () => {
    const wrong = protocol === vless ? Buffer.alloc(40) : Buffer.from(`${"0".repeat(56)}\r\nrest`);
    await using origin = await openTcpOrigin(echo);
    await using server = await openBehind(protocol, {
      "allow-insecure": true,
      ...users,
      fallbacks: [{ dest: origin.port, xver: 1 }],
    });
    const visitor = connect({ port: server.port, host: "127.0.0.1" });
    await once(visitor, "connect");
    for (const byte of wrong) visitor.write(Buffer.from([byte]));
    visitor.end();
    const answer = await readAll(visitor);
    assert.match(String(answer), /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\n/);
    assert.deepEqual(answer.subarray(answer.length - wrong.length), wrong);

    await using closed = await openBehind(protocol, { "allow-insecure": true, ...users });
    const second = connect({ port: closed.port, host: "127.0.0.1" });
    second.on("error", () => {}).write(wrong);
    second.on("data", () => assert.fail("a byte to an unauthenticated client"));
    await once(second, "close");
  });

  test(`${protocol.type}: users are replaced as a whole; a removed user loses all open sessions`, async () => {
    const { accept } = directAccept();
    const env = openInboundEnv({ accept });
    const other = protocol === vless ? "11111111-2222-3333-4444-555555555555" : "other";
    const mine = protocol === vless ? uuid : password;
    const side = protocol.inbound as unknown as Parameters<typeof openBehind>[0]["inbound"] & {
      schema: { parse(raw: object): object };
      open(options: object, environment: object): Promise<ManagedInbound>;
    };
    const inbound = await side.open(side.schema.parse({ ...serverTls, ...users }), env);
    const port = inbound.endpoints[0]?.port as number;
    await using _stop = { [Symbol.asyncDispose]: () => env[Symbol.asyncDispose]() };
    const client = (credential: string) =>
      openClient(protocol, {
        server: "127.0.0.1",
        port,
        ...clientTls,
        ...(protocol === vless ? { uuid: credential } : { password: credential }),
      });
    await using origin = await openTcpOrigin(echo);
    const dial = async (credential: string) => {
      const outbound = await client(credential);
      const context = { signal: AbortSignal.timeout(10_000), metadata: null };
      const stream = await outbound.connect(origin.destination, context);
      stream.on("error", () => {}).write("x");
      return stream;
    };
    const open = await dial(mine);
    assert.equal(String((await once(open, "data"))[0]), "x");
    const bad = [
      { id: "a", credential: other, flow: null },
      { id: "b", credential: other, flow: null },
    ];
    assert.throws(() => inbound.replaceUsers(bad));
    assert.equal(open.destroyed, false);
    inbound.replaceUsers([{ id: "b", credential: other, flow: null }]);
    await Promise.race([once(open, "end"), once(open, "close")]);
    const refused = await dial(mine);
    refused.resume();
    await Promise.race([once(refused, "end"), once(refused, "close")]);
    const next = await dial(other);
    assert.equal(String((await once(next, "data"))[0]), "x");
    for (const stream of [open, refused, next]) stream.destroy();
    await inbound[Symbol.asyncDispose]();
  });

  test(`${protocol.type}: an unprotected listener must be asked for`, async () => {
    await assert.rejects(openBehind(protocol, users), /listener test-in: .*allow-insecure: true/);
  });
}

describe("openssl", { skip: missing("openssl") }, () => {
  test("s_server accepts our client and keeps the connection half open", { timeout: 30_000 }, async () => {
    const port = await freePort();
    const command = [
      "openssl",
      "s_server",
      "-accept",
      `${port}`,
      "-cert",
      "{}/c.pem",
      "-key",
      "{}/k.pem",
      "-rev",
    ];
    const files = { "c.pem": certificate.cert, "k.pem": certificate.key };
    await using _peer = await startPeerWithFiles(command, port, files);
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const options = { serverName: "server.test", fingerprint: certificate.fingerprint };
    const stream = await openTlsClient(socket, options, AbortSignal.timeout(10_000));
    stream.write("abc\n");
    assert.equal(String((await once(stream, "data"))[0]), "cba\n");
    stream.on("error", () => {}).destroy();
  });
});

describe("nginx in front", { skip: missing("nginx") }, () => {
  test("grpc_pass and a WebSocket proxy carry VLESS", { timeout: 60_000 }, async () => {
    await using server = await openServer(vless, {
      "allow-insecure": true,
      "grpc-service-name": "Gun",
      "ws-path": "/ws",
      users: [{ uuid }],
    });
    const port = await freePort();
    const config = `
      daemon off; master_process off; pid {}/pid; error_log stderr; events {}
      http {
        access_log off; client_body_temp_path {}/body; proxy_temp_path {}/proxy; fastcgi_temp_path {}/f;
        uwsgi_temp_path {}/u; scgi_temp_path {}/s; client_max_body_size 0;
        server {
          listen 127.0.0.1:${port} ssl http2; ssl_certificate {}/c.pem; ssl_certificate_key {}/k.pem;
          location /Gun/ { grpc_pass grpc://127.0.0.1:${server.port}; }
          location /ws {
            proxy_pass http://127.0.0.1:${server.port}; proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
          }
        }
      }`;
    const files = { "c.pem": certificate.cert, "k.pem": certificate.key, "nginx.conf": config };
    await using _peer = await startPeerWithFiles(["nginx", "-p", "{}/", "-c", "{}/nginx.conf"], port, files);
    const common = { server: "127.0.0.1", port, ...clientTls, uuid };
    await using grpc = await openClient(vless, {
      ...common,
      network: "grpc",
      "grpc-opts": { "grpc-service-name": "Gun" },
    });
    await exchange(grpc, 1 << 20);
    await using ws = await openClient(vless, {
      ...common,
      network: "ws",
      "ws-opts": { path: "/ws?ed=1024" },
    });
    await exchange(ws, 1 << 20);
  });
});

test("a TLS client without ALPN and without SNI is served", async () => {
  await using web = await openWeb();
  await using server = await openBehind(trojan, {
    ...serverTls,
    users: [{ password }],
    fallbacks: [{ dest: web.port }],
  });
  const plain = tlsConnect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
  plain.end("GET /x HTTP/1.0\r\n\r\n");
  assert.match(String(await readAll(plain)), /web GET \/x$/);
});
