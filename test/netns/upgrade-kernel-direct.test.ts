/** Another process takes over from the one that lets the kernel forward what is certainly DIRECT. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailingLaunchers } from "../support/failing-launchers.ts";
import {
  ask,
  assertEchoes,
  config,
  hold,
  NUMBERS,
  openWorld,
  skip,
  ways,
} from "../support/kernel-direct-world.ts";
import { leftovers } from "../support/netns-row.ts";
import { CLIENT, FAR, type Transit } from "../support/transit.ts";
import { openUpgradedCore } from "../support/upgraded-core.ts";
import { until } from "../support/until.ts";

const CLASSIFIER =
  "kernel-direct-ebpf: true, kernel-direct-ebpf-interfaces: [down0], kernel-direct-ebpf-required: true";
const REDIRECTS = "kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-redirect: true";
const MODES = {
  "the sets of nftables": "",
  "the classifier's DIRECT mark": CLASSIFIER,
  "the classifier's redirect into the TUN": `${CLASSIFIER}, ${REDIRECTS}`,
};

/** One name is asked for, and stays in the kernel; the other is proxied. */
async function checkWays(row: Transit): Promise<void> {
  await ask(row, "direct");
  assert.equal(await ways(row, NUMBERS.direct), "kernel");
  assert.equal(await ways(row, NUMBERS.proxied), "proxy");
}

const tables = async ({ router }: Transit): Promise<string> => router.run("nft", "list", "tables", "inet");

/** While `work` is done, connections and datagrams that are proxied are answered, and none comes past weir. */
async function captured(row: Transit, work: () => Promise<void>): Promise<void> {
  await row.arrivals.forget();
  const load = row.talk("steady", FAR[0], 7);
  assert.equal(await load.nextLine(), "begun");
  await work();
  load.close();
  const { tcp, udp, faults }: { tcp: number; udp: number; faults: string[] } = JSON.parse(
    await load.nextLine(),
  );
  assert.deepEqual(faults, []);
  assert.ok(tcp > 4 && udp > 2, `${tcp} connections, ${udp} flows`);
  const past = (await row.arrivals.list()).filter((line) => CLIENT.some((own) => line.split(" ")[1] === own));
  assert.deepEqual(past, []);
}

for (const [mode, tun] of Object.entries(MODES))
  test(`${mode}: the new process learns anew, nothing passes by`, { skip, timeout: 240_000 }, async () => {
    using launchers = new FailingLaunchers();
    await using row = await openWorld("upkd");
    await using upgraded = await openUpgradedCore(config({ tun }), row.router.prefix);
    const { pid } = upgraded;
    const before = await tables(row);
    await ask(row, "direct");
    const [inKernel, proxied] = [hold(row, NUMBERS.direct), hold(row, NUMBERS.proxied)];
    await assertEchoes([...inKernel, ...proxied], "begun");
    await checkWays(row); // and their last acknowledgements have arrived
    await captured(row, () => assert.rejects(upgraded.upgrade(launchers.path("go")), /SIGKILL/));
    await assertEchoes([...inKernel, ...proxied], "still");
    await checkWays(row);
    await captured(row, () => upgraded.upgrade());
    await assertEchoes([...inKernel, ...proxied], "handed over");
    await until("the table has its name", async () => (await tables(row)) === before);
    await checkWays(row);
    await captured(row, () => upgraded.end(pid));
    await assertEchoes(inKernel, "alone");
    await checkWays(row);
    assert.equal(await tables(row), before);
    await upgraded.end(upgraded.pid);
    assert.equal(await ways(row, NUMBERS.proxied), "kernel");
    assert.doesNotMatch(await row.router.run("nft", "list", "ruleset"), /svc/);
    const errors = upgraded.core.output().match(/level=(?:error|fatal) .*/g) ?? [];
    assert.deepEqual(
      errors.filter((line) => !line.includes("upgrade:")),
      [],
    );
  });

test("nothing is left behind", { skip }, () => assert.deepEqual(leftovers("upkd"), []));
