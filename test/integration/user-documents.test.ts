import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { exportState, importState } from "#users/exchange.ts";
import { PARTS } from "#users/records.ts";

const DOCUMENT = {
  version: 1,
  generation: 1,
  listeners: {
    edge: {
      id: "5cb4a700-504d-46f3-91d1-e7d52689ca72",
      name: "edge",
      protocol: "vless",
      revision: 1_785_312_000_000,
      applied_revision: 1_785_312_000_000,
      users: [
        {
          id: "eaa13dde-339f-437f-80a3-c14c83068959",
          inbound: "edge",
          protocol: "vless",
          name: "alice",
          uuid: "6d27a52f-4539-4ac1-9bd4-b8e05e53c197",
          flow: "xtls-rprx-vision",
          enabled: true,
          upload_bytes: 5,
          download_bytes: 6,
          traffic_generation: 1,
          created_at: 1_785_312_000_000,
          updated_at: 1_785_312_000_001,
        },
        {
          id: "5f0b3f5c-6d0e-4d5e-8a43-8b1f3e1d0c77",
          inbound: "edge",
          protocol: "vless",
          name: "bob",
          uuid: "0d27a52f-4539-4ac1-9bd4-b8e05e53c197",
          enabled: true,
          upload_bytes: 5000,
          download_bytes: 6000,
          traffic_generation: 2,
          created_at: 1_785_312_000_000,
          updated_at: 1_785_312_000_001,
          quota: { total_bytes: 100_000, reset: "month", window_seconds: 0 },
          quota_usage: { period: "month", rows: [[1_782_864_000, 300, 400]] },
          expires_at: 1_795_312_000_000,
          upload_bps: 1_000_000,
          download_bps: 2_000_000,
          connection_limit: 100,
          ip_limit: 3,
        },
      ],
    },
  },
  subscriptions: {
    "eaa13dde-339f-437f-80a3-c14c83068959": Buffer.alloc(32, 7).toString("base64url"),
    "5f0b3f5c-6d0e-4d5e-8a43-8b1f3e1d0c77": Buffer.alloc(32, 8).toString("base64url"),
  },
};
const identify = (uuid: string) =>
  /^[0-9a-f-]{32,36}$/i.test(uuid) ? uuid.replaceAll("-", "").toLowerCase() : null;
const users = { label: "VLESS", credential: "uuid", flows: ["", "xtls-rprx-vision"], identify };
const VLESS = { type: "vless", users } as never;

function inStore<T>(work: (store: Store) => T): T {
  const home = mkdtempSync(join(tmpdir(), "weir-exchange-"));
  try {
    using store = Store.open({ path: join(home, "s.db"), parts: PARTS, nowMs: () => 1000, log: SILENT });
    return work(store);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

test("a document goes in and comes out as it was", () => {
  inStore((store) => {
    assert.equal(importState(store, JSON.stringify(DOCUMENT), [VLESS]), 2);
    const document = JSON.parse(exportState(store, [VLESS])) as typeof DOCUMENT;
    document.listeners.edge.users.sort((a, b) => a.name.localeCompare(b.name));
    assert.deepEqual(document, DOCUMENT);
    assert.throws(() => importState(store, JSON.stringify(DOCUMENT), [VLESS]), /not new/);
  });
});

test("a document that contradicts itself is refused, and nothing of it is kept", () => {
  const { edge } = DOCUMENT.listeners;
  const wrong = [
    { ...DOCUMENT, version: 2 },
    { ...DOCUMENT, subscriptions: {} },
    {
      ...DOCUMENT,
      subscriptions: { ...DOCUMENT.subscriptions, stray: Buffer.alloc(32, 9).toString("base64url") },
    },
    ...["B", "+"].map((last) => ({
      ...DOCUMENT,
      subscriptions: {
        ...DOCUMENT.subscriptions,
        [edge.users[0]?.id ?? ""]: Buffer.alloc(32, 7).toString("base64url").slice(0, 42) + last,
      },
    })),
    { ...DOCUMENT, listeners: { other: edge } },
    { ...DOCUMENT, listeners: { edge: { ...edge, applied_revision: edge.revision + 1 } } },
    ...[
      { traffic_generation: 0 },
      { quota: { total_bytes: 0, reset: "never", window_seconds: 0 } },
      { quota: { total_bytes: 1, reset: "window", window_seconds: 0 } },
      { quota: { total_bytes: 1, reset: "year", window_seconds: 0 } },
      { expires_at: -1 },
      { ip_limit: 1.5 },
      { uuid: "x" },
      { uuid: "" },
      { password: "x" },
      { name: "half \ud800" },
      { name: edge.users[1]?.name.toUpperCase() },
      { uuid: edge.users[1]?.uuid.toUpperCase() },
      { uuid: edge.users[1]?.uuid.replaceAll("-", "") },
    ].map((fields) => ({
      ...DOCUMENT,
      listeners: { edge: { ...edge, users: [{ ...edge.users[0], ...fields }, edge.users[1]] } },
    })),
  ];
  for (const one of wrong)
    inStore((store) => {
      assert.throws(
        () => importState(store, JSON.stringify(one), [VLESS]),
        StoreError,
        JSON.stringify(one).slice(0, 80),
      );
      assert.equal(store.generation, 0);
    });
});

test("a document that is no JSON is refused without a word of what it says", () => {
  inStore((store) => {
    assert.throws(() => importState(store, '{"password": "hunter2" "x"}', [VLESS]), {
      name: "StoreError",
      message: "not a state document: it is no JSON",
    });
  });
});
