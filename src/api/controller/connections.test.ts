import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { codePoint } from "../../../test/support/code-points.ts";
import { runs } from "../../../test/support/runs.ts";
import { apiApp } from "../../../test/support/api-app.ts";
import { connection } from "../../../test/support/connection-view.ts";
import { MemoryControl } from "../../../test/support/memory-control.ts";
import { ConnectionsWriter } from "./connections-json.ts";

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

interface Snapshot {
  readonly downloadTotal: number;
  readonly uploadTotal: number;
  readonly memory: number;
  readonly connections: readonly {
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly chains: readonly string[];
    readonly [field: string]: unknown;
  }[];
}

test("controller-api.md §15.10 ports are text, the leaf comes first, every field is there", async () => {
  const { app, control } = await apiApp();
  const entry = control.connect("example.com");
  const { connections, ...totals } = (await app.inject("/connections")).json<Snapshot>();
  assert.deepEqual(totals, { downloadTotal: 2000, uploadTotal: 1000, memory: 41_943_040 });
  assert.deepEqual(connections, [
    {
      id: entry.metadata.id,
      metadata: {
        network: "tcp",
        type: "Socks5",
        sourceIP: "192.168.1.5",
        destinationIP: "",
        sourceGeoIP: null,
        destinationGeoIP: null,
        sourceIPASN: "",
        destinationIPASN: "",
        sourcePort: "50000",
        destinationPort: "443",
        inboundIP: "127.0.0.1",
        inboundPort: "7890",
        inboundName: "DEFAULT-MIXED",
        inboundUser: "",
        rematchName: "",
        host: "example.com",
        dnsMode: "normal",
        uid: 1000,
        process: "curl",
        processPath: "/usr/bin/curl",
        specialProxy: "",
        specialRules: "",
        remoteDestination: "203.0.113.9",
        dscp: 0,
        sniffHost: "",
      },
      upload: 1024,
      download: 20_480,
      start: "2026-01-02T03:04:05.678+00:00",
      chains: ["Node 1", "Auto", "Proxy"],
      providerChains: ["", "", ""],
      rule: "DomainSuffix",
      rulePayload: "example.com",
    },
  ]);
});

test("no session is an empty list; closing one or all is 204, unknown ids too", async () => {
  const { app, control } = await apiApp();
  assert.deepEqual((await app.inject("/connections")).json<Snapshot>().connections, []);
  const [one] = ["a.example", "b.example", "c.example"].map((host) => control.connect(host));
  const close = (url: string) => app.inject({ method: "DELETE", url });
  assert.equal((await close(`/connections/${one?.metadata.id}`)).statusCode, 204);
  assert.equal((await close("/connections/unknown")).statusCode, 204);
  assert.equal(control.live.size, 2);
  assert.equal((await close("/connections")).statusCode, 204);
  assert.equal(control.live.size, 0);
});

test("whatever a client put into its names, the document stays JSON and says the same", () => {
  const control = new MemoryControl();
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), fc.string(), (host, payload) => {
      const entry = connection(host);
      control.live.set("x", { ...entry, rule: { apiType: "Domain", payload }, chain: [host, payload] });
      const [shown] = (JSON.parse(new ConnectionsWriter(control).write()) as Snapshot).connections;
      assert.equal(shown?.metadata.host, host);
      assert.equal(shown?.rulePayload, payload);
      assert.deepEqual(shown?.chains, [payload, host]);
    }),
    { numRuns: runs(100) },
  );
});

test("what changes while a session lives is shown, though most of its text is kept", () => {
  const control = new MemoryControl();
  const writer = new ConnectionsWriter(control);
  const live = {
    ...connection("a.example", "1"),
    chain: [] as readonly string[],
    settled: null as object | null,
    uploadBytes: 0,
    remoteHost: "",
  };
  control.live.set("1", live);
  const shown = () => (JSON.parse(writer.write()) as Snapshot).connections[0];
  assert.deepEqual(shown()?.chains, []);
  Object.assign(live, { chain: ["Proxy", "Node 1"], settled: {}, uploadBytes: 7 });
  assert.deepEqual([shown()?.chains, shown()?.upload], [["Node 1", "Proxy"], 7]);
  Object.assign(live, { remoteHost: "203.0.113.1", uploadBytes: 8 });
  assert.equal(shown()?.metadata.remoteDestination, "203.0.113.1");
  assert.equal(shown()?.upload, 8);
  live.uploadBytes = 9;
  assert.equal(shown()?.upload, 9);
  // a fresh view of the same session that goes elsewhere
  control.live.set("1", { ...live, settled: {}, chain: ["Proxy", "Node 2"], providerChain: ["", "remote"] });
  assert.deepEqual(shown()?.chains, ["Node 2", "Proxy"]);
  assert.deepEqual(shown()?.providerChains, ["remote", ""]);
});

test("sessions with and without a kept text, old and new ones, say the same in every document", () => {
  const control = new MemoryControl();
  const writer = new ConnectionsWriter(control);
  const bait = ',"upload":1,"download":2}';
  const names = Array.from({ length: 1_200 }, (_, at) => `host-${at}${bait}.example`);
  for (const name of names) control.live.set(name, { ...connection(name), settled: {} });
  for (let documents = 0; documents < 4; documents++) {
    const { connections } = JSON.parse(writer.write()) as Snapshot;
    assert.deepEqual(
      connections.map(({ metadata }) => String(metadata["host"])).toSorted(byText),
      names.toSorted(byText),
    );
    assert.ok(connections.every(({ upload, download }) => upload === 1024 && download === 20_480));
    const name = `late-${documents}${bait}`;
    control.live.set(name, { ...connection(name), rule: { apiType: "Domain", payload: bait } });
    names.push(name);
  }
});
