import assert from "node:assert/strict";
import { test } from "node:test";
import { transportClientFields, type TransportClientFields } from "#transport/fields.ts";
import * as z from "zod";
import { webSocketOf } from "./settings.ts";

const schema = z.object(transportClientFields(["ws"]));

function headerOf(ws: Record<string, unknown>): string | null {
  const options: TransportClientFields = schema.parse({ network: "ws", "ws-opts": ws });
  const settings = webSocketOf({ ...options, server: "s.example", port: 443, tls: false } as never);
  return settings.kind === "websocket" ? settings.earlyDataHeader : null;
}

test("?ed= puts early data into the usual header, unless another one is named; max-early-data alone into the path", () => {
  assert.equal(headerOf({ path: "/?ed=2048" }), "sec-websocket-protocol");
  assert.equal(headerOf({ path: "/?ed=2048", "early-data-header-name": "" }), "sec-websocket-protocol");
  assert.equal(headerOf({ path: "/?ed=2048", "early-data-header-name": "X-Early" }), "X-Early");
  assert.equal(headerOf({ path: "/", "max-early-data": 2048 }), "");
});
