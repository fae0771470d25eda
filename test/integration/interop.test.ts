/** The driver of the matrix in docs/interop.md, with two of the peers that Debian has. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { missing } from "../support/peer.ts";
import { CELLS } from "../support/interop/cells.ts";
import { grpcio } from "../support/interop/grpcio.ts";
import { runCell } from "../support/interop/matrix.ts";
import { v2ray } from "../support/interop/ray.ts";
import type { Speaker } from "../support/interop/speaker.ts";

const AMOUNTS = { bulkBytes: 1 << 20, connections: 20 };

const rows: readonly (readonly [Speaker, string, string])[] = [
  [v2ray, "vmess aes-128-gcm", "yes"],
  [grpcio, "vless grpc TCP", "–"],
];

for (const [peer, name, udp] of rows)
  for (const side of ["out", "in"] as const) {
    const skip = missing(peer.program) || (peer.absent?.() ?? false);
    test(`${name} with ${peer.program}, ${side}`, { skip, timeout: 60_000 }, async () => {
      const cell = CELLS.find((one) => one.name === name);
      assert.ok(cell !== undefined);
      const results = await runCell(peer, cell, side, AMOUNTS);
      if (typeof results === "string") assert.fail(results);
      assert.match(results.bulk, /MB\/s$/);
      assert.match(results.short, /\/s$/);
      assert.equal(results.late, "yes");
      assert.equal(results.udp, udp);
    });
  }
