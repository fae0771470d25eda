/** The driver of the matrix in docs/interop.md, with the one peer that Debian has. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { missing } from "../support/peer.ts";
import { CELLS } from "../support/interop/cells.ts";
import { PEERS, runCell } from "../support/interop/matrix.ts";

const v2ray = PEERS.find(({ program }) => program === "v2ray");
const cell = CELLS.find(({ name }) => name === "vmess aes-128-gcm");

for (const side of ["out", "in"] as const)
  test(`one cell of the matrix, ${side}`, { skip: missing("v2ray"), timeout: 60_000 }, async () => {
    assert.ok(v2ray !== undefined && cell !== undefined);
    const results = await runCell(v2ray, cell, side, { bulkBytes: 1 << 20, connections: 20 });
    if (typeof results === "string") assert.fail(results);
    assert.match(results.bulk, /MB\/s$/);
    assert.match(results.short, /\/s$/);
    assert.equal(results.udp, "yes");
  });
