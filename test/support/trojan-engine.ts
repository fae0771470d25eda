import assert from "node:assert/strict";
import type { TlsClient } from "#core/tls.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import { until } from "./until.ts";

const key = "a".repeat(56);
/** Of the request to 127.0.0.1:9: KEY CRLF CMD(1) TYPE(1) IP(4) PORT(2) CRLF */
export const TROJAN_REQUEST_BYTES = 56 + 2 + 1 + 1 + 4 + 2 + 2;

/** Everything leads through a Trojan node at that port. */
export async function openTrojanEngine(port: number, client: TlsClient): Promise<DecidingEngine> {
  const engine = await DecidingEngine.open(1);
  await until("the first version", () => engine.version > 0);
  const tls = client.recipe?.() ?? null;
  assert.ok(tls !== null);
  const by = { ...recipe("trojan", { key }), under: { tls, upgrade: null } };
  engine.node = { server: toDestination(LOOPBACK_V4, port), recipe: by };
  engine.change([{ is: "always" }]);
  await until("the worker has it", () => engine.dropped.length > 0);
  return engine;
}
