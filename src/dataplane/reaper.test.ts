import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { Network } from "#core/session.ts";
import { session } from "../../test/support/routing.ts";
import { LiveTable } from "./connections.ts";
import { reap } from "./reaper.ts";

function row(
  table: LiveTable,
  {
    type = "Redir",
    port = 443,
    network = "tcp",
    dialled = true,
  }: { type?: string; port?: number; network?: Network; dialled?: boolean } = {},
) {
  const entry = table.open({
    ...session("9.9.9.9", { network, port, inbound: { type } }),
    id: `${Math.random()}`,
  });
  if (dialled) entry.dialled(new PassThrough());
  return entry;
}

test("kernel-direct.md §5: captured, dialled, silent for 30 s and no key exchange", () => {
  const table = new LiveTable();
  const kept = [
    row(table, { type: "Socks5" }),
    row(table, { type: "Vless" }),
    row(table, { port: 500 }),
    row(table, { port: 4500, type: "Tun" }),
    row(table, { network: "udp", type: "Tun" }),
    row(table, { dialled: false }),
    row(table),
  ];
  kept.at(-1)?.count("download", 1);
  const reaped = ["Redir", "TProxy", "Tun"].map((type) => row(table, { type }));
  const nowMs = performance.now();
  reap(table, nowMs + 29_000);
  assert.ok(
    reaped.every(({ signal }) => !signal.aborted),
    "not yet",
  );
  reap(table, nowMs + 31_000);
  assert.ok(reaped.every(({ signal }) => signal.aborted));
  assert.ok(kept.every(({ signal }) => !signal.aborted));
});
