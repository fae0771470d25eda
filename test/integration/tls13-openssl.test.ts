/** The TLS 1.3 engine against OpenSSL's own server: groups that need a retry, suites, its commands for new keys, client certificates. */
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { describe, test } from "node:test";
import { FIREFOX_148 } from "#transport/tls13/fingerprints/firefox.ts";
import { SAFARI_26 } from "#transport/tls13/fingerprints/safari.ts";
import { openssl, type OpensslServer, opensslClient as client } from "../support/openssl-server.ts";
import { missing } from "../support/peer.ts";
import { dial13, type Dial13Options } from "../support/tls13-dial.ts";
import { until } from "../support/until.ts";

/** What comes from the server is what was typed there, and the other way round. */
async function talk(server: OpensslServer, options: Dial13Options = {}): Promise<void> {
  const { stream } = await dial13(server.port, options);
  let got = "";
  stream.on("data", (bytes: Buffer) => (got += String(bytes)));
  stream.write("from the client\n");
  await until("the server has it", () => server.said().includes("from the client"));
  server.write("from the server\n");
  await until("the client has it", () => got.includes("from the server"));
  stream.destroy();
}

describe("openssl s_server", { skip: missing("openssl") }, () => {
  for (const group of ["P-256", "P-384", "P-521", "X25519"])
    test(`group ${group}`, { timeout: 30_000 }, async () => {
      await using server = await openssl("-groups", group);
      await talk(server, { template: SAFARI_26 });
    });

  for (const suite of ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
    test(suite, { timeout: 30_000 }, async () => {
      await using server = await openssl("-ciphersuites", suite);
      await talk(server, { template: FIREFOX_148 });
    });

  test("a client certificate", { timeout: 30_000 }, async () => {
    await using server = await openssl("-Verify", "1", "-CAfile", "client.pem", "-verify_return_error");
    const identity = { chain: [new X509Certificate(client.cert).raw], key: createPrivateKey(client.key) };
    await talk(server, { identity });
    assert.match(server.said(), /client\.test/);
  });

  test("new keys, for one direction and for both", { timeout: 30_000 }, async () => {
    await using server = await openssl("-msg");
    const { stream } = await dial13(server.port);
    let got = "";
    stream.on("data", (bytes: Buffer) => (got += String(bytes)));
    for (const [at, command] of ["k", "K", "K", "k"].entries()) {
      server.write(`${command}\n`);
      await until("the line came", () => {
        server.write(`line ${at}\n`); // again, should it have been read together with the command
        return got.includes(`line ${at}`);
      });
      stream.write(`answer ${at}\n`);
      await until("the answer came", () => server.said().includes(`answer ${at}`));
    }
    stream.destroy();
    const updates = (sign: string): number =>
      server.said().split(new RegExp(`${sign}.*KeyUpdate`)).length - 1;
    assert.equal(updates(">>>"), 4);
    assert.equal(updates("<<<"), 2, "we were asked for two");
  });
});
