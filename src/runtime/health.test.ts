import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import { SILENT, type LogText } from "#core/log.ts";
import type { Outbound } from "#core/outbound.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { DelayBook } from "#net/dial/delay-book.ts";
import { openHealth } from "./health.ts";

test("why a delay test failed is said at level debug, but for one that was given up", async () => {
  const said: string[] = [];
  const debug = (text: LogText): void => void said.push(typeof text === "string" ? text : text());
  const log = { ...SILENT, debug };
  const health = openHealth(new DelayBook(), () => ({ unified: false, trust: DEFAULT_TRUST }), log);
  const node: Partial<Outbound> = {
    name: "HK",
    type: "Trojan",
    networks: new Set(["tcp"]),
    connect: () => Promise.reject(new DialError("failed", "TLS to a.example: the certificate has expired")),
  };
  const plan = { url: "http://192.0.2.1/", timeoutMs: 1000, expected: [] };
  await assert.rejects(health.test(node as Outbound, plan, new AbortController().signal), DialError);
  assert.deepEqual(said, ["delay test of HK: TLS to a.example: the certificate has expired"]);
  await assert.rejects(health.test(node as Outbound, plan, AbortSignal.abort(new Error("gone"))));
  assert.equal(said.length, 1);
});
