import assert from "node:assert/strict";
import { test } from "node:test";
import type { AcceptedConnection, OffloadedTls } from "#core/accepted.ts";
import type { NativeTls } from "#platform/tls.ts";
import { KeptTlsClient } from "./kept-client.ts";

function keptClient() {
  const tls: { object: bigint | undefined } = { object: 7n };
  const asked: bigint[] = [];
  const contexts = {
    serverNameOf: (object: bigint) => (asked.push(object), "Name.Example"),
    versionOf: () => "TLSv1.3",
    alpnOf: () => "h2",
  };
  const client = new KeptTlsClient(
    { tls: tls as OffloadedTls } as AcceptedConnection,
    { contexts: contexts as unknown as NativeTls["contexts"], exact: true },
    () => assert.fail("it is not taken"),
  );
  return { tls, asked, client };
}

test("what TLS has agreed on is asked for once, when it is looked at", () => {
  const { tls, asked, client } = keptClient();
  assert.deepEqual(asked, []);
  assert.deepEqual([client.serverName, client.alpn, client.mayBypass], ["name.example", "h2", true]);
  tls.object = undefined;
  assert.equal(client.serverName, "name.example", "it is known");
  assert.deepEqual(asked, [7n]);
});

test("an object that the worker uses is not asked", () => {
  const { tls, asked, client } = keptClient();
  tls.object = undefined;
  assert.deepEqual([client.serverName, client.alpn, client.mayBypass], [null, null, false]);
  assert.deepEqual(asked, []);
  tls.object = 8n; // its dial has failed
  assert.equal(client.alpn, "h2");
});
