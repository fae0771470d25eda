/** Sessions that the TLS 1.3 engine resumes, against the runtime's server and OpenSSL's. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { createServer, type TlsOptions } from "node:tls";
import { canResume } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_120, CHROME_133, QQ_11 } from "#transport/tls13/fingerprints/chrome.ts";
import { FIREFOX_120, FIREFOX_148 } from "#transport/tls13/fingerprints/firefox.ts";
import { IOS_14, SAFARI_16, SAFARI_26 } from "#transport/tls13/fingerprints/safari.ts";
import { Sessions } from "#transport/tls13/sessions.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openssl } from "../support/openssl-server.ts";
import { missing } from "../support/peer.ts";
import { dial13, type Dial13Options } from "../support/tls13-dial.ts";
import { until } from "../support/until.ts";

const own = makeCertificate({ names: ["server.test"] });
const TEMPLATES = [CHROME_133, CHROME_120, QQ_11, FIREFOX_120, SAFARI_26, SAFARI_16, IOS_14];

/** Answers each client with whether its session was resumed. */
async function serve(options: TlsOptions = {}) {
  const server = createServer(
    { cert: own.cert, key: own.key, minVersion: "TLSv1.3", ...options },
    (socket) => {
      socket.on("error", () => {});
      socket.end(socket.isSessionReused() ? "resumed" : "full");
    },
  );
  server.on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void (await once(server.close(), "close")) };
}

/** What the server says, once it has ended. */
async function visit(port: number, sessions: Sessions, options: Dial13Options = {}): Promise<string> {
  const { stream } = await dial13(port, { sessions, session: sessions.take(), ...options });
  let said = "";
  stream.on("data", (bytes: Buffer) => (said += String(bytes)));
  await once(stream, "end");
  stream.destroy();
  return said;
}

for (const template of TEMPLATES)
  test(`${template.name}: a second visit resumes, a third resumes the second`, async () => {
    assert.ok(canResume(template));
    await using server = await serve();
    const sessions = new Sessions();
    const told: string[] = [];
    for (let time = 0; time < 3; time++) told.push(await visit(server.port, sessions, { template }));
    assert.deepEqual(told, ["full", "resumed", "resumed"]);
  });

test("a template that says nothing of resumption has no session to show", () => {
  assert.equal(canResume(FIREFOX_148), false);
});

for (const ciphers of ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
  test(`${ciphers}: a session is resumed`, async () => {
    await using server = await serve({ ciphers });
    const sessions = new Sessions();
    assert.equal(await visit(server.port, sessions), "full");
    assert.equal(await visit(server.port, sessions), "resumed");
  });

test("the judge is asked again when a session is resumed, of the chain that was shown then", async () => {
  await using server = await serve();
  const sessions = new Sessions();
  assert.equal(await visit(server.port, sessions), "full");
  const judge = (): never => {
    throw new TypeError("this chain is not good any more");
  };
  await assert.rejects(visit(server.port, sessions, { judge }), /not good any more/);
});

test("a server that does not know the session makes a new one", async () => {
  const sessions = new Sessions();
  await using first = await serve();
  assert.equal(await visit(first.port, sessions), "full");
  await using second = await serve();
  assert.equal(await visit(second.port, sessions), "full");
  assert.equal(await visit(second.port, sessions), "resumed");
});

test("a server that chooses another hash makes a new one", async () => {
  const sessions = new Sessions();
  await using first = await serve({ ciphers: "TLS_AES_256_GCM_SHA384", ticketKeys: Buffer.alloc(48, 7) });
  assert.equal(await visit(first.port, sessions), "full");
  await using second = await serve({ ciphers: "TLS_AES_128_GCM_SHA256", ticketKeys: Buffer.alloc(48, 7) });
  assert.equal(await visit(second.port, sessions), "full");

  await using third = await serve({ ciphers: "TLS_AES_256_GCM_SHA384", ecdhCurve: "P-256" });
  assert.equal(await visit(third.port, sessions), "full", "the hello behind a retry shows no session");
});

describe("openssl s_server", { skip: missing("openssl") }, () => {
  for (const [title, args, template] of [
    ["resumes", [], CHROME_133],
    ["resumes behind a HelloRetryRequest", ["-groups", "P-256"], CHROME_133],
    [
      "resumes with SHA-384 behind one",
      ["-groups", "P-384", "-ciphersuites", "TLS_AES_256_GCM_SHA384"],
      SAFARI_26,
    ],
  ] as const)
    test(title, { timeout: 30_000 }, async () => {
      await using server = await openssl(...args);
      const sessions = new Sessions();
      for (let time = 1; time <= 2; time++) {
        const { stream } = await dial13(server.port, { template, sessions, session: sessions.take() });
        let got = "";
        stream.on("data", (bytes: Buffer) => (got += String(bytes)));
        stream.write(`visit ${time}\n`);
        await until("the server has it", () => server.said().includes(`visit ${time}`));
        server.write(`answer ${time}\n`);
        await until("the client has it", () => got.includes(`answer ${time}`));
        stream.end();
        await once(stream, "close");
      }
      await until("the second was resumed", () => server.said().includes("Reused session-id"));
    });
});
