import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { openHttpUpgradeClient, openWebSocketClient } from "./client.ts";

test("a header field with a line break ends the connection, too", async () => {
  const place = { path: "/", host: "a.test", headers: { "X-Broken": "one\r\ntwo" } };
  const { signal } = new AbortController();
  for (const open of [
    (wire: Duplex) => openHttpUpgradeClient(wire, { ...place, fastOpen: false }, signal),
    (wire: Duplex) => openHttpUpgradeClient(wire, { ...place, fastOpen: true }, signal),
    (wire: Duplex) => openWebSocketClient(wire, { ...place, earlyDataBytes: 0, earlyDataHeader: "" }, signal),
  ]) {
    const [wire] = duplexPair();
    await assert.rejects(open(wire), /line break/);
    assert.equal(wire.destroyed, true);
  }
});
