import assert from "node:assert/strict";
import { test } from "node:test";
import { contentsOfParts, readListParts, type ListKind } from "#providers/rule-set/read.ts";
import type { Ip } from "#core/session.ts";
import { Slices } from "#core/slices.ts";
import { turnsDuring } from "../support/turns.ts";
import { contentIn } from "#documents/node-list.ts";
import { DocumentReader } from "#documents/reader.ts";

const DOMAINS: ListKind = { behavior: "domain", format: "text" };
const none = (): never => assert.fail("no list of conditions");
const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const names = (count: number): string =>
  Array.from({ length: count }, (_, at) => `+.host${at}.example${at % 97}.com\n`).join("");

test("a large list of names is read elsewhere and matches here", async () => {
  const bytes = bytesOf(names(300_000) + "*.stars.com\nbad..com\n");
  const [, turnsHere] = await turnsDuring(() => readListParts(bytes, DOMAINS));
  const [parts, turns] = await turnsDuring(() =>
    new DocumentReader(new Slices(), () => {}).readList(bytes, DOMAINS),
  );
  const { data, skipped } = await contentsOfParts(parts, DOMAINS, none, new Slices());
  assert.deepEqual([data.size, skipped.count], [300_001, 1]);
  for (const host of ["host299999.example75.com", "a.host0.example0.com", "x.stars.com"])
    assert.equal(data.match({ host }), true, host);
  assert.equal(data.match({ host: "host300000.example76.com" }), false);
  assert.ok(turnsHere < 5, `${turnsHere} turns of the event loop where this thread reads`);
  assert.ok(turns > 100, `${turns} turns of the event loop beside the reading thread`);
});

test("networks and lines come over, too", async () => {
  const reader = new DocumentReader(new Slices(), () => {}, {
    smallBytes: 0,
    mostMs: 60_000,
    mostHeapMiB: 256,
  });
  const kind: ListKind = { behavior: "ipcidr", format: "text" };
  const many = Array.from({ length: 5000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24\n`).join("");
  const { data } = await contentsOfParts(
    await reader.readList(bytesOf(`${many}2001:db8::/32\n`), kind),
    kind,
    none,
    new Slices(),
  );
  assert.equal(data.match({ ip: "10.19.135.7" as Ip }), true);
  assert.equal(data.match({ ip: "10.200.0.1" as Ip }), false);
  assert.equal(data.match({ ip: "2001:db8::1" as Ip }), true);
  assert.ok("networks" in data);
  const lines = await reader.readList(bytesOf("DOMAIN,a.com\n"), { behavior: "classical", format: "text" });
  assert.deepEqual(lines, { lines: ["DOMAIN,a.com"] });
});

test("what is wrong with a list is said as before; a bound that is exceeded ends the thread", async () => {
  const reader = new DocumentReader(new Slices(), () => {}, {
    smallBytes: 0,
    mostMs: 60_000,
    mostHeapMiB: 256,
  });
  await assert.rejects(reader.readList(bytesOf("<html>"), DOMAINS), /this is an HTML page, not a rule list/);
  const yaml: ListKind = { behavior: "domain", format: "yaml" };
  await assert.rejects(
    reader.readList(bytesOf(`payload: ${"[".repeat(100_000)}`), yaml),
    /nested more than 64 levels/,
  );
  await assert.rejects(
    reader.readList(bytesOf(`payload: ${"[".repeat(5_000_000)}`), yaml),
    /too large to be more than/,
  );
  const impatient = new DocumentReader(new Slices(), () => {}, {
    smallBytes: 0,
    mostMs: 1,
    mostHeapMiB: 256,
  });
  await assert.rejects(impatient.readList(bytesOf(names(300_000)), DOMAINS), /took more than 0\.001 s/);
  const small = new DocumentReader(new Slices(), () => {}, {
    smallBytes: 0,
    mostMs: 60_000,
    mostHeapMiB: 24,
  });
  await assert.rejects(small.readList(bytesOf(names(1_000_000)), DOMAINS), /took more than 24 MiB of memory/);
  assert.deepEqual(await reader.readList(bytesOf("a.com\n"), { behavior: "classical", format: "text" }), {
    lines: ["a.com"],
  });
});

test("nodes come over with their types, quotes and places", async () => {
  const text =
    'proxies:\n  - { name: a, type: socks5, port: 0123, password: "0123", opts: { list: [x, "y", true] } }\n  - { name: b }\n';
  const here = contentIn(bytesOf(text));
  const there = await new DocumentReader(new Slices(), () => {}, {
    smallBytes: 0,
    mostMs: 60_000,
    mostHeapMiB: 256,
  }).readNodes(bytesOf(text));
  assert.deepEqual(there.items, here.items);
  assert.deepEqual(there.locate(["proxies", 1, "name"], "value"), { line: 3, column: 5 });
});

test("hostile subscriptions are refused elsewhere, with the words of before", async () => {
  const reader = new DocumentReader(new Slices(), () => {});
  const bomb = Array.from(
    { length: 10 },
    (_, at) =>
      `x${at}: &x${at} [${Array(10)
        .fill(at === 0 ? "a" : `*x${at - 1}`)
        .join(", ")}]\n`,
  );
  for (const [text, words] of [
    [`proxies: ${"[".repeat(5_000_000)}`, /nested more than 64 levels deep/],
    [`${bomb.join("")}proxies: *x9\n${"#".repeat(20_000)}`, /excessive aliasing/],
    [`proxies: [${"{a: 1},".repeat(100_000)}]`, /100000 nodes; at most 20000 can be read/],
    ["\n".repeat(1_000_000), /neither the key proxies nor share links/],
    ["=".repeat(200_000), /neither the key proxies nor share links/],
  ] as const) {
    const before = process.threadCpuUsage();
    await assert.rejects(reader.readNodes(bytesOf(text)), words);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 500_000, `${words}: ${(user + system) / 1000} ms of the main thread`);
  }
});
