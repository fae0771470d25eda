/** Clients that ask for names: what workers know of them they decide, and it is what the main thread would have decided. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { NAME_VALUES, NameTable } from "#lib/name-table.ts";
import { ADDRESS_KINDS, PINNED, valuesOf } from "#net/address/known-names.ts";
import { ANY_V4 } from "#net/address/ip.ts";
import { DecidingEngine } from "../support/deciding-engine.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { call } from "../proofs/changes-hold.ts";
import { address, openScripted, reply, type ScriptedServer } from "./dns-kit.ts";

const skip = process.platform === "linux" ? false : "SKIP named decisions: needs Linux";

/** Says four bytes and has them back. False: it was not connected. */
async function isServed(port: number, host: string, originPort: number): Promise<boolean> {
  const answer = await socksConnect(port, host, originPort).catch(() => null);
  if (answer === null) return false;
  using client = answer.client;
  if (answer.status !== 0) return false;
  client.send("ping");
  return (await client.read(4).catch(() => null)) !== null;
}

const HOUR_MS = 3_600_000;
const A = 1 * ADDRESS_KINDS;

function put(table: NameTable, kind: number, name: string, ips: readonly number[][], forMs = HOUR_MS): void {
  const nowMs = Date.now();
  const [first] = ips;
  table.put(
    kind,
    name,
    valuesOf(ips.length, first === undefined ? null : Uint8Array.from(first)),
    nowMs + forMs,
    nowMs,
  );
}

test(
  "a name that is known is decided alone and reported with its name; one that is not, or no more, is asked",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo, ANY_V4);
    const table = new NameTable();
    await using engine = await DecidingEngine.open(2);
    await until("the first version", () => engine.version > 0);
    engine.names = table.memory;
    engine.change([{ is: "network", side: "ip", bytes: Uint8Array.of(127, 0, 0, 0), bits: 8 }]);
    put(table, A, "known.test", [[127, 0, 3, 1]]);
    put(table, PINNED, "pinned.test", [[127, 0, 3, 2]]);
    const { port } = engine;
    await until("the version with names", () => isServed(port, "known.test", origin.port));
    await until("all workers have it", () => engine.dropped.length > 0);
    const [asked, before] = [engine.asked.length, engine.served.length];
    for (let count = 0; count < 20; count++)
      for (const name of ["known.test", "pinned.test"]) assert.ok(await isServed(port, name, origin.port));
    await until("all events", () => engine.served.length + engine.joined.length >= before + 40);
    assert.equal(engine.asked.length, asked, "the main thread is asked for none");
    const seen = new Set(
      engine.served
        .slice(before)
        .map(({ metadata: { destination }, ip, ipFrom }) => JSON.stringify([destination, ip, ipFrom])),
    );
    const destination = (host: string) => ({ host, ip: null, port: origin.port });
    assert.deepEqual(
      seen,
      new Set([
        JSON.stringify([destination("known.test"), "127.0.3.1", "rules"]),
        JSON.stringify([destination("pinned.test"), "127.0.3.2", "hosts"]),
      ]),
    );
    assert.equal(await isServed(port, "other.test", origin.port), false);
    assert.equal(engine.asked.length, asked + 1);
    table.clear();
    for (const name of ["known.test", "pinned.test"])
      assert.equal(await isServed(port, name, origin.port), false);
    assert.equal(engine.asked.length, asked + 3);
  },
);

test("readers in other threads never see half of an entry, or one of another name", { skip }, async () => {
  const table = new NameTable();
  const file = fileURLToPath(new URL("../support/name-reader.ts", import.meta.url));
  const readers = [1, 2].map(() => new Worker(file, { workerData: table.memory }));
  const ends = readers.map(
    (one) => new Promise<number>((resolve, reject) => one.once("message", resolve).once("error", reject)),
  );
  const values = new Int32Array(NAME_VALUES);
  const state = { isOver: false };
  const all = Promise.all(ends).finally(() => (state.isOver = true));
  for (let count = 1; !state.isOver; count++) {
    const nowMs = Date.now();
    // Both names are in turn in the same place, and their values say which one they belong to.
    for (const at of [0, 1])
      table.put(1, `name-${at}-${count & 3}.test`, values.fill(count * 2 + at), nowMs + 50, nowMs);
    if (count % 64 === 0) await new Promise((resolve) => void setImmediate(resolve));
  }
  for (const found of await all) assert.ok(found > 1_000, `${found} found`);
});

const configOf = (
  dns: ScriptedServer,
  { hosts = "", more = "", mode = "normal", rules = "" } = {},
): string => `
external-controller: 127.0.0.1:0
workers: 2
ipv6: false
hosts: { ${hosts} }
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
dns:
  enable: true
  enhanced-mode: ${mode}
  use-system-hosts: false
  nameserver: ["127.0.0.1:${dns.port}"]
${more}
rules:
${rules}  - MATCH,DIRECT
`;

interface Row {
  readonly rule: string;
  readonly metadata: { readonly host: string; readonly remoteDestination: string; readonly dnsMode: string };
}

/** Of a connection that is open while it is looked at. */
async function rowOf(core: Core, host: string, originPort: number): Promise<Row | null> {
  const { client, status } = await socksConnect(await core.port("in"), host, originPort);
  using _client = client;
  if (status !== 0) return null;
  client.send("ping");
  await client.read(4);
  const all = await call<{ connections: readonly Row[] | null }>(core, "GET", "/connections");
  return all?.connections?.[0] ?? null;
}

const shown = ({ rule, metadata: { host, remoteDestination } }: Row): string =>
  `${rule} ${host} ${remoteDestination}`;

test("of several addresses the others are tried where the first does not answer", { skip }, async () => {
  await using origin = await openTcpOrigin(echo);
  await using dns = await openScripted((query) => {
    const [question] = query.questions;
    const ips = question?.type === 1 ? ["127.9.9.9", "127.0.0.1"] : [];
    return reply(
      query,
      ips.map((ip) => address(question?.name ?? "", ip)),
    );
  });
  await using core = await startCore(configOf(dns));
  for (let count = 0; count < 20; count++)
    assert.equal((await rowOf(core, "two.test", origin.port))?.metadata.remoteDestination, "127.0.0.1");
  assert.equal(dns.asked.length, 1);
});

test("what the first connection of a name shows, the following show, too", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using dns = await openScripted((query) => {
    const [question] = query.questions;
    const name = question?.name ?? "";
    const ips = name.startsWith("two.") ? ["127.9.9.9", "127.0.0.5"] : ["127.0.0.4"];
    return reply(query, question?.type === 1 ? ips.map((ip) => address(name, ip)) : []);
  });
  const rules =
    "  - DOMAIN,rejected.test,REJECT\n  - IP-CIDR,127.0.0.4/32,DIRECT\n  - IP-CIDR,127.8.8.8/32,DIRECT,no-resolve\n";
  const hosts = `"pinned.test": 127.8.8.8, "both.test": [127.8.8.8, 127.8.8.9]`;
  for (const [mode, more] of [
    ["normal", ""],
    ["fake-ip", ""],
    ["redir-host", ""],
    ["normal", `sniffer: { enable: true, sniff: { TLS: { ports: [1-65535] } } }`],
  ] as const) {
    await using core = await startCore(configOf(dns, { rules, hosts, mode, more }));
    for (const [host, wanted] of [
      ["one.test", "IPCIDR one.test 127.0.0.4"],
      ["two.test", "Match two.test 127.9.9.9"],
      ["pinned.test", "IPCIDR pinned.test 127.8.8.8"],
      ["127.0.0.4", "IPCIDR  127.0.0.4"],
      ["127.9.9.9", "Match  127.9.9.9"],
    ] as const)
      for (let count = 0; count < 6; count++) {
        const row = await rowOf(core, host, origin.port);
        await until("it is gone", async () => {
          const all = await call<{ connections: readonly Row[] | null }>(core, "GET", "/connections");
          return (all?.connections ?? []).length === 0;
        });
        assert.equal(row === null ? null : shown(row), wanted, `${mode} ${count}`);
        if (host === "pinned.test") assert.equal(row?.metadata.dnsMode, "hosts");
      }
    const both = new Set<string>();
    for (let count = 0; count < 40 && both.size < 2; count++) {
      const row = await rowOf(core, "both.test", origin.port);
      if (row !== null) both.add(`${shown(row)} ${row.metadata.dnsMode}`);
    }
    assert.deepEqual(
      both,
      new Set(["IPCIDR both.test 127.8.8.8 hosts", "Match both.test 127.8.8.9 hosts"]),
      "each connection has another one, and the rule for it",
    );
    for (let count = 0; count < 4; count++)
      assert.equal(await isServed(await core.port("in"), "rejected.test", origin.port), false);
  }
});

test(
  "a flush, the end of an answer, a reload with other hosts and other DNS hold for the very next connection",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo, ANY_V4);
    let [last, ttl] = [1, 300];
    await using dns = await openScripted((query) => {
      const [question] = query.questions;
      return reply(query, question?.type === 1 ? [address(question.name, `127.0.1.${last}`, ttl)] : []);
    });
    await using core = await startCore(configOf(dns));
    const ipOf = async (): Promise<string> =>
      (await rowOf(core, "name.test", origin.port))?.metadata.remoteDestination ?? "none";
    const settles = async (wanted: string): Promise<void> => {
      for (let count = 0; count < 8; count++) {
        await until("connections before are gone", async () => {
          const all = await call<{ connections: readonly Row[] | null }>(core, "GET", "/connections");
          return (all?.connections ?? []).length === 0;
        });
        assert.equal(await ipOf(), wanted);
      }
    };
    await settles("127.0.1.1");
    [last, ttl] = [2, 1];
    await settles("127.0.1.1");
    await call(core, "POST", "/cache/dns/flush");
    await settles("127.0.1.2");
    last = 3;
    await until("the answer has ended", async () => (await ipOf()) === "127.0.1.3");
    for (const [hosts, wanted] of [
      [`"name.test": 127.0.2.2`, "127.0.2.2"],
      [`"+.test": 127.0.2.3`, "127.0.2.3"],
      ["", "127.0.1.3"],
    ] as const) {
      core.write(configOf(dns, { hosts }));
      await call(core, "PUT", "/configs?force=true", {});
      await settles(wanted);
    }
  },
);
