/** What traffic control keeps, when its files are damaged, full, or locked; and datagrams. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openUdpEcho } from "../support/origin.ts";
import { socksAssociate } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { startGoverned, statusOf, type GovernedCore } from "../support/governed-core.ts";
import { until } from "../support/until.ts";

const ALL = "\n  enabled: true\n  global: { id: all }\n";

async function restarted(governed: GovernedCore, change: (store: string) => void) {
  await governed.core.stop();
  const { home } = governed.core;
  change(join(home, "traffic-control.db"));
  return startCore(readFileSync(join(home, "config.yaml"), "utf8"), { args: ["-d", home] });
}

/** Every 64th byte of the second half: whatever lies there is not what it was. */
function damage(file: string): void {
  const bytes = readFileSync(file);
  for (let at = bytes.length >> 1; at < bytes.length; at += 64) bytes[at] = (bytes[at] as number) ^ 0xff;
  writeFileSync(file, bytes);
}

test("§11.11 a damaged store is healed from its backup; without a backup statistics begin anew and the rest runs", async () => {
  await using governed = await startGoverned(ALL);
  await governed.transfer(100, 5000);
  {
    await using healed = await restarted(governed, damage);
    assert.equal((await statusOf(governed, "all")).counters.download_bytes, 5000);
    assert.equal(await healed.stop(), 0);
  }
  const files = () => readdirSync(governed.core.home).filter((name) => name.includes(".corrupt-"));
  assert.ok(files().length > 0);
  await using anew = await restarted(governed, (store) => {
    damage(store);
    rmSync(`${store}.bak`, { force: true });
  });
  await anew.shows(/begins anew/);
  assert.equal((await statusOf(governed, "all")).counters.download_bytes, 0);
  await governed.transfer(100, 700);
  await until(
    "all that was moved",
    async () => (await statusOf(governed, "all")).counters.download_bytes === 700,
  );
  assert.ok(existsSync(join(governed.core.home, "traffic-control.db")));
});

test("a store that cannot be opened costs the start nothing but the keeping; a PUT that asks for it is refused", async () => {
  await using governed = await startGoverned(`${ALL}  store: shared/tc.db\n`, {
    seed(home) {
      mkdirSync(join(home, "shared"));
      chmodSync(join(home, "shared"), 0o777);
    },
  });
  assert.match(governed.core.output(), /traffic control: .*nothing that is counted outlives this process/);
  await governed.transfer(100, 5000);
  assert.equal((await statusOf(governed, "all")).counters.download_bytes, 5000);
  const { body } = await governed.call<{ revision: number; config: object }>(
    "GET",
    "traffic-control/policies",
  );
  for (const [store, status] of [
    ["../outside.db", 400],
    ["config.yaml", 400],
    ["shared/tc.db", 500],
  ] as const) {
    const config = { ...body.config, store };
    const answer = await governed.call("PUT", "traffic-control/policies", {
      revision: body.revision,
      config,
    });
    assert.equal(answer.status, status, answer.text);
  }
  assert.equal((await statusOf(governed, "all")).counters.download_bytes, 5000);
});

test("datagrams are counted by their payload; those above the limit are dropped and not counted", async () => {
  await using governed = await startGoverned(`\n  enabled: true\n  global: { id: all, upload-bps: 80000 }\n`);
  await using echo = await openUdpEcho();
  using client = await socksAssociate(governed.mixed);
  client.send(Buffer.alloc(1000), "127.0.0.1", echo.port);
  assert.equal((await client.next()).payload.length, 1000);
  const one = (await statusOf(governed, "all")).counters;
  assert.deepEqual([one.upload_bytes, one.download_bytes, one.connections], [1000, 1000, 1]);
  const sent = 200;
  for (let at = 0; at < sent; at++) client.send(Buffer.alloc(1000), "127.0.0.1", echo.port);
  await new Promise((done) => setTimeout(done, 300)); // what was not dropped has come through by then
  const { counters } = await statusOf(governed, "all");
  assert.ok(counters.upload_bytes < (sent / 2) * 1000, `${counters.upload_bytes} bytes at 10 kB/s`);
});
