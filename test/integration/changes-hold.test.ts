/** With four workers a change holds for the very next connection, and nothing is lost of any; `npm run prove:changes` does it at length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANY_V4 } from "#net/address/ip.ts";
import {
  anyAddress,
  call,
  changingConfig,
  isServed,
  proveChanges,
  shownChanges,
} from "../proofs/changes-hold.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP changes: needs Linux";

interface Row {
  readonly id: string;
  readonly chains: readonly string[];
  readonly rule: string;
  readonly upload: number;
  readonly download: number;
  readonly metadata: { readonly sourcePort: string; readonly destinationIP: string; readonly type: string };
}

interface Connections {
  readonly connections: readonly Row[] | null;
  readonly uploadTotal: number;
  readonly downloadTotal: number;
}

test(
  "a choice, a mode, a rule and a reload hold for every connection after their answer, under load",
  { skip },
  async (context) => {
    const found = await proveChanges({ rounds: 12, seamMs: 0 });
    context.diagnostic(shownChanges(found));
    assert.deepEqual(found.faults, []);
  },
);

test("connections, totals and counters of rules are exact when they are read", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using core = await startCore(changingConfig());
  const port = await core.port("in");
  const hits = async (): Promise<number> => {
    const all = await call<{ rules: readonly { extra: { hitCount: number } }[] }>(core, "GET", "/rules");
    return all?.rules[1]?.extra.hitCount ?? -1;
  };
  const before = await hits();
  const totals = await call<Connections>(core, "GET", "/connections");
  for (let count = 0; count < 50; count++) assert.ok(await isServed(port, origin.port));
  const address = anyAddress();
  const { client } = await socksConnect(port, address, origin.port);
  using _client = client;
  client.send(Buffer.from("hello"));
  await client.read(5);
  const source = String(client.socket.localPort);
  const row = async () => {
    const shown = await call<Connections>(core, "GET", "/connections");
    return shown?.connections?.find(({ metadata }) => metadata.sourcePort === source);
  };
  const shown = await row();
  assert.deepEqual(shown?.chains, ["DIRECT", "choice"]);
  assert.deepEqual(
    [shown.rule, shown.metadata.destinationIP, shown.metadata.type],
    ["Match", address, "Socks5"],
  );
  // A worker counts what a socket has taken, which a client on the same machine may have read by then.
  await until("its bytes", async () => {
    const now = await row();
    return now?.upload === 5 && now.download === 5;
  });
  await until("51 hits", async () => (await hits()) === before + 51);
  await until("all bytes", async () => {
    const now = await call<Connections>(core, "GET", "/connections");
    return now?.uploadTotal === (totals?.uploadTotal ?? 0) + 205;
  });
  const lines =
    core.output().match(/127\.0\.0\.1:\d+ --> (?:127\.\d+\.\d+\.\d+|same\.pinned\.test):\d+ match Match/g) ??
    [];
  assert.equal(new Set(lines).size, 51);
  assert.ok(lines.some((line) => line.startsWith(`127.0.0.1:${source} `)));
  const closed = new Promise((resolve) => void client.socket.on("error", () => {}).once("close", resolve));
  await call(core, "DELETE", `/connections/${(await row())?.id}`);
  await closed;
  await until("its end", async () => (await row()) === undefined);
  assert.equal(await core.stop(), 0);
});
