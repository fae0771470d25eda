/** Nodes of Trojan that workers dial by themselves, a server that has no TLS of its own, and a client of them. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import type { TlsClient } from "#core/tls.ts";
import { recipe } from "#protocols/begin-wire.ts";
import type { DecidingEngine } from "./deciding-engine.ts";
import { openNodeEngine } from "./node-engine.ts";
import { socksConnect } from "./socks-client.ts";

const key = "a".repeat(56);
/** Of the request to 127.0.0.1:9: KEY CRLF CMD(1) TYPE(1) IP(4) PORT(2) CRLF */
const TROJAN_REQUEST_BYTES = 56 + 2 + 1 + 1 + 4 + 2 + 2;

/** Everything leads through a Trojan node at that port. */
export async function openTrojanEngine(port: number, client: TlsClient): Promise<DecidingEngine> {
  const tls = client.recipe?.() ?? null;
  assert.ok(tls !== null);
  return await openNodeEngine(port, { ...recipe("trojan", { key }), under: { tls, upgrade: null } });
}

/** Answers with what comes behind the request. */
export function echoBehindRequest(stream: Duplex): void {
  let skipped = 0;
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    const from = Math.min(chunk.length, TROJAN_REQUEST_BYTES - skipped);
    skipped += from;
    if (chunk.length > from) stream.write(chunk.subarray(from));
  });
  stream.on("end", () => stream.end());
}

/** What a client of the engine gets back for "ping". */
export async function ping(engine: DecidingEngine): Promise<string> {
  const { client, status } = await socksConnect(engine.port, "127.0.0.1", 9);
  using _client = client;
  assert.equal(status, 0);
  client.send("ping");
  const said = String(await client.read(4));
  client.socket.end();
  await client.rest();
  return said;
}
