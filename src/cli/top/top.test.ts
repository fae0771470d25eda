import assert from "node:assert/strict";
import { test } from "node:test";
import { cells, fitted } from "./cells.ts";
import { readSample } from "./sample.ts";
import { linesOf, type Screen } from "./screen.ts";

const connection = (id: string, upload: number, more: object = {}) => ({
  id,
  upload,
  download: 2 * upload,
  start: "1970-01-01T00:00:00.000+00:00",
  chains: ["node", "group"],
  metadata: {
    network: "tcp",
    sourceIP: "10.0.0.1",
    destinationIP: "",
    destinationPort: "443",
    host: "h.example",
    inboundUser: "",
    inboundName: "in",
    ...more,
  },
});
const document = (...connections: readonly object[]) => ({
  uploadTotal: 1000,
  downloadTotal: 2000,
  memory: 1024,
  connections,
});
const status = (bytes: number) => ({
  policies: [
    {
      policy: { id: "p", name: "Living room", kind: "device", upload_bps: 1e6 },
      counters: { upload_bytes: bytes, download_bytes: 0 },
      active_connections: 1,
      over_quota: true,
    },
  ],
});
const screen: Screen = { columns: 80, rows: 24, view: "all", isPaused: false, title: "t" };

test("rates are what came since the moment before, by connection, user and policy", () => {
  const first = readSample(
    { connections: document(connection("a", 100, { inboundUser: "ann" })), status: status(10) },
    null,
    1_000,
  );
  assert.deepEqual([first.total.upRate, first.connections[0]?.upRate], [0, 0]);
  const next = readSample(
    {
      connections: document(connection("a", 300, { inboundUser: "ann" }), connection("b", 50)),
      status: status(30),
    },
    first,
    3_000,
  );
  assert.deepEqual(
    next.connections.map(({ upRate, downRate }) => [upRate, downRate]),
    [
      [100, 200],
      [25, 50],
    ],
  );
  assert.deepEqual(
    next.users.map(({ label, upRate }) => [label, upRate]),
    [
      ["ann", 100],
      ["10.0.0.1", 25],
    ],
  );
  assert.equal(next.policies?.[0]?.upRate, 10);
  const lines = linesOf(next, screen);
  assert.ok(lines.some(({ text, style }) => style === "alarm" && text.includes("Living room (limit 1M/-)")));
  const none = readSample({ connections: { ...document(), connections: null }, status: null }, null, 0);
  assert.deepEqual([none.connections, none.policies], [[], null]);
});

test("every line fits, whatever names there are and however small the terminal is", () => {
  const names = [
    "\u001b[31mred\u0007",
    "很长的名字".repeat(20),
    "e\u0301".repeat(90),
    "\u202eback",
    "😀".repeat(50),
  ];
  const list = names.flatMap((host, at) =>
    Array.from({ length: 30 }, (_, number) =>
      connection(`${at}-${number}`, number, { host, inboundUser: host }),
    ),
  );
  const sample = readSample({ connections: document(...list), status: status(1) }, null, 1);
  for (const [columns, rows] of [
    [80, 24],
    [40, 10],
    [132, 50],
    [80, 3],
  ] as const)
    for (const view of ["all", "users", "connections", "policies"] as const) {
      const lines = linesOf(sample, { ...screen, columns, rows, view });
      assert.ok(lines.length <= rows, `${lines.length} lines of ${rows}`);
      for (const { text } of lines) {
        assert.ok(cells(text) <= columns, text);
        assert.doesNotMatch(text, /\p{Cc}|\u202e/u);
      }
    }
  assert.match(
    linesOf(sample, screen)
      .map(({ text }) => text)
      .join("\n"),
    /… \d+ more/,
  );
  assert.deepEqual([fitted("abcd", 3), fitted("很长", 3), cells("很a\u0301")], ["ab…", "很…", 3]);
});
