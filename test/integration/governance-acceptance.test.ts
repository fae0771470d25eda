/** Lines of the acceptance list in traffic-control.md (§11) that speak of sockets, files or clocks in the real program. */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { startGoverned, statusOf, type GovernedCore, type Status } from "../support/governed-core.ts";
import { openUdpEcho } from "../support/origin.ts";
import { openSocksUdp } from "../support/socks-udp.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { until } from "../support/until.ts";

const again = (governed: GovernedCore) =>
  startCore(readFileSync(join(governed.core.home, "config.yaml"), "utf8"), {
    args: ["-d", governed.core.home],
  });

/** Downloads without end from these addresses; answers with bytes a second of each, measured over some time. */
async function ratesOf(
  governed: GovernedCore,
  sources: readonly string[],
  ms: number,
): Promise<readonly number[]> {
  const moved = sources.map(() => 0);
  const sockets = await Promise.all(
    sources.map(async (source, at) => {
      const to = { host: "127.0.0.1", port: governed.origin.port };
      const socket = await openTunnel("connect", governed.mixed, source, to);
      socket.on("data", (chunk: Buffer) => (moved[at] = (moved[at] as number) + chunk.length));
      socket.write(`${Number.MAX_SAFE_INTEGER}\n`);
      socket.resume();
      return socket;
    }),
  );
  const startedMs = performance.now();
  await new Promise((done) => setTimeout(done, ms));
  const seconds = (performance.now() - startedMs) / 1000;
  const rates = moved.map((bytes) => bytes / seconds);
  for (const socket of sockets) socket.destroy();
  return rates;
}

/** Loose: two cores, other work beside. `npm run bench:governance rate` measures. */
function near(rate: number, wanted: number, what: string): void {
  assert.ok(Math.abs(rate / wanted - 1) < 0.25, `${what}: ${rate.toFixed(0)} bytes a second for ${wanted}`);
}

test("§11.2 two sessions share 8 Mbit/s; a device policy of 4 Mbit/s halves what that device can have, no other's", async () => {
  const common = "  enabled: true\n  global: { download-bps: 8000000 }\n";
  await using governed = await startGoverned(common);
  const both = await ratesOf(governed, ["127.0.0.2", "127.0.0.3"], 2000);
  near((both[0] as number) + (both[1] as number), 1e6, "together");
  near(both[0] as number, 5e5, "one of two");
  const { body } = await governed.call<{ revision: number; config: object }>(
    "GET",
    "traffic-control/policies",
  );
  const devices = [{ id: "tv", "source-cidrs": ["127.0.0.2/32"], "download-bps": 4_000_000 }];
  const config = { ...body.config, devices };
  assert.equal((await governed.call("PUT", "traffic-control/policies", { ...body, config })).status, 200);
  near((await ratesOf(governed, ["127.0.0.2"], 2000))[0] as number, 5e5, "the device");
  near((await ratesOf(governed, ["127.0.0.3"], 2000))[0] as number, 1e6, "another device");
});

test("§11.3 8 kbit/s passes a datagram of 1,500 bytes; what a slow device is refused costs the common limit nothing", async () => {
  await using governed = await startGoverned(`  enabled: true
  global: { id: all, upload-bps: 8000000 }
  devices: [{ id: slow, source-cidrs: [127.0.0.2/32], upload-bps: 8000 }]
`);
  await using echo = await openUdpEcho();
  const head = Uint8Array.of(0, 0, 0, 1, 127, 0, 0, 1, echo.port >> 8, echo.port & 0xff);
  const send = async (source: string, sizes: readonly number[]): Promise<number> => {
    using relay = await openSocksUdp(governed.mixed, source);
    const socket = createSocket("udp4");
    socket.bind(0, source);
    await once(socket, "listening");
    let answers = 0;
    socket.on("message", () => answers++);
    const first = once(socket, "message");
    for (const size of sizes) socket.send(Buffer.concat([head, Buffer.alloc(size)]), relay.port, "127.0.0.1");
    await first;
    await new Promise((done) => setTimeout(done, 200)); // what is dropped shows by its absence
    socket.close();
    return answers;
  };
  assert.equal(await send("127.0.0.2", Array<number>(100).fill(1500)), 1);
  assert.equal((await statusOf(governed, "slow")).counters.upload_bytes, 1500);
  // The 35,000 bytes that go at once are there but for the time's refill: 148,500 refused bytes would have taken them.
  assert.equal(await send("127.0.0.3", Array<number>(22).fill(1500)), 22);
  assert.equal((await statusOf(governed, "all")).counters.upload_bytes, 23 * 1500);
});

test("§11.4 a quota crossed by an upload: over at once, committed at once and kept through a SIGKILL, then the overage rate", async () => {
  await using governed = await startGoverned(`  enabled: true
  global: { id: all, quota: { upload-bytes: 1000000, window: 1h, overage-upload-bps: 800000 } }
`);
  const arrived = (bytes: number): Promise<void> =>
    until(`${bytes} bytes at the origin`, () => governed.origin.seen.upload >= bytes);
  const committedAt = async () =>
    (await governed.call<Status>("GET", "traffic-control/status")).body.last_checkpoint;
  await until("the start is on the medium", async () => (await committedAt()) > 0);
  const before = await committedAt();
  await until("another second", () => Math.floor(Date.now() / 1000) > before);
  await governed.transfer(1_200_000, 10);
  await arrived(1_000_000); // the client's end says only that the kernel has all of it
  const reached = await statusOf(governed, "all");
  assert.deepEqual([reached.over_quota, reached.counters.exceeded_events], [true, 1]);
  await until("the quota is on the medium", async () => (await committedAt()) > before);
  await governed.core.stop("SIGKILL");
  await using _again = await again(governed);
  const kept = await statusOf(governed, "all");
  assert.deepEqual([kept.over_quota, kept.counters.exceeded_events], [true, 1]);
  assert.ok(kept.rolling.upload_bytes >= 1_000_000);
  const startedMs = performance.now();
  const wanted = governed.origin.seen.upload + 200_000;
  await governed.transfer(200_000, 10);
  await arrived(wanted);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs > 1500, `${tookMs} ms for 200 kB at 100 kB/s`);
});

test("§11.5 routing rules in another order keep a rule's counters", async () => {
  await using governed = await startGoverned(
    "  enabled: true\n  rules: [{ id: local, type: IP-CIDR, payload: 127.0.0.0/8, target: Proxy }]\n",
  );
  await governed.transfer(100, 4321);
  const text = readFileSync(join(governed.core.home, "config.yaml"), "utf8");
  await governed.core.reload(text.replace("rules:\n", "rules:\n  - DOMAIN,first.example,DIRECT\n"));
  await governed.transfer(100, 1000);
  const { counters, generation } = await statusOf(governed, "local");
  assert.deepEqual([counters.download_bytes, counters.connections, generation], [5321, 2, 1]);
});

test("§11.11 a byte flipped in a blob, a blob under another key, a row that is gone: healed from the backup", async () => {
  await using governed = await startGoverned("  enabled: true\n  global: { id: all }\n");
  await governed.transfer(100, 5000);
  await governed.core.stop();
  const store = join(governed.core.home, "traffic-control.db");
  const changes = {
    flip: "UPDATE policies SET value = CAST(substr(value, 1, 20) || x'ff' || substr(value, 22) AS BLOB)",
    move: "UPDATE reports SET key = 'device:unknown' WHERE key = 'global:all'",
    delete: "DELETE FROM reports",
  };
  for (const [what, sql] of Object.entries(changes)) {
    const database = new DatabaseSync(store);
    database.exec(sql);
    database.close();
    rmSync(`${store}.sum`, { force: true }); // the sum of the whole file would tell before anything is read
    await using core = await again(governed);
    assert.match(core.output(), /healed from/, what);
    assert.equal((await statusOf(governed, "all")).counters.download_bytes, 5000, what);
    const { body } = await governed.call<{ summary: Record<string, number> }>(
      "GET",
      "traffic-control/reports/summary?key=global:all",
    );
    assert.equal(body.summary["download_bytes"], 5000, what);
    assert.equal(await core.stop(), 0);
  }
});
