import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { TCP_ONLY, type DialContext, type Outbound } from "#core/outbound.ts";
import { ipOf, toDestination } from "#net/address/ip.ts";
import { LiveProxyProvider } from "./proxy-provider.ts";
import { TrackedOutbound } from "./tracked-outbound.ts";
import type { ResourceEnv } from "./resource.ts";
import { memoryBook } from "../../test/support/written-book.ts";

interface Node {
  readonly name: string;
  readonly version: number;
}

const context: DialContext = { signal: new AbortController().signal, metadata: null };
const anywhere = toDestination("e.example", 80);

test("a node that did not change stays, one that goes is closed when its last session has ended", async () => {
  const disposed: string[] = [];
  let content: readonly Node[] = [];
  let failing = "";
  const opened = (node: Node): Outbound => ({
    name: node.name,
    type: "Test",
    networks: TCP_ONLY,
    connect: async () => new PassThrough(),
    associate: () => assert.fail(),
    async [Symbol.asyncDispose]() {
      disposed.push(`${node.name}${node.version}`);
    },
  });
  const env: Omit<ResourceEnv, "prepare" | "preparePayload"> = {
    files: { resolve: () => assert.fail(), readPem: () => assert.fail(), watchPem: () => assert.fail() },
    log: SILENT,
    nowMs: Date.now,
    fetch: () => assert.fail(),
    changeRouting: async (apply) => apply(),
    written: memoryBook(),
    etags: null,
  };
  const provider = new LiveProxyProvider<Node>(
    {
      name: "p",
      testUrl: null,
      source: { title: "p", type: "inline", url: null, path: "", intervalSeconds: 0, maxBytes: 1 },
    },
    {
      read: () => assert.fail(),
      readPayload: async () => content,
      pause: async () => {},
      async open(node) {
        if (node.name === failing) throw new Error("cannot be opened");
        return opened(node);
      },
      onOpened: () => {},
      onChange: () => {},
    },
    env,
  );
  const use = async (nodes: readonly Node[]) => {
    content = nodes;
    await provider.resource.load();
  };
  const names = () => provider.nodes().map(({ name }) => name);

  await use([
    { name: "a", version: 1 },
    { name: "b", version: 1 },
    { name: "c", version: 1 },
  ]);
  const [a, b, c] = provider.nodes() as [Outbound, Outbound, Outbound];
  const session = await b.connect(anywhere, context);
  const same = provider.nodes();
  assert.equal(provider.nodes(), same, "the same array until the contents change");

  failing = "d";
  await use([
    { name: "e", version: 1 },
    { name: "d", version: 1 },
  ]);
  assert.equal(provider.nodes(), same, "one that cannot be opened leaves the old in use");
  assert.deepEqual(disposed, ["e1"], "what was opened on the way is closed");

  await use([
    { name: "a", version: 1 },
    { name: "b", version: 2 },
  ]);
  await turn();
  assert.deepEqual(names(), ["a", "b"]);
  assert.equal(provider.nodes()[0], a);
  assert.notEqual(provider.nodes()[1], b);
  assert.deepEqual(disposed, ["e1", "c1"], "c had no session; the old b has one");
  assert.equal(c.name, "c");
  session.destroy();
  await turn();
  await turn();
  assert.deepEqual(disposed, ["e1", "c1", "b1"]);
  await provider[Symbol.asyncDispose]();
  assert.deepEqual(disposed, ["e1", "c1", "b1", "a1", "b2"]);
});

test("a node says itself how its connections can be made without it", async () => {
  const template = {
    routingMark: 1,
    interfaceName: "",
    probes: null,
    timeoutMs: 1,
    v4: true,
    v6: true,
    loopback: true,
    names: null,
  };
  const plan = { ...template, ip: ipOf("192.0.2.1"), port: 80, isFirstOfMany: false };
  const node: Outbound = {
    name: "a",
    type: "Test",
    networks: TCP_ONLY,
    connect: () => assert.fail(),
    associate: () => assert.fail(),
    [Symbol.asyncDispose]: async () => {},
  };
  const silent = new TrackedOutbound(node);
  assert.equal(
    silent.plain(anywhere, null, () => context.signal),
    null,
  );
  assert.equal(silent.template(), null);
  const said = new TrackedOutbound({
    ...node,
    plain: ({ host }) => (host === "e.example" ? plan : null),
    template: () => template,
  });
  assert.equal(
    said.plain(anywhere, null, () => context.signal),
    plan,
  );
  assert.equal(said.template(), template);
});
