/** The classifier on the ports of a bridge, in a namespace: where it sits, what it counts, what a failure leaves. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startCore } from "../support/start-core.ts";
import { openNetns, skipNetns, type Netns } from "../support/netns.ts";

const NEAR = fileURLToPath(new URL("../support/classifier-near.ts", import.meta.url));
const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const skip = skipNetns("the classifier", "tc");

async function bridge(): Promise<Netns> {
  const router = await openNetns("classifier");
  await router.ip(
    "link add lan type bridge",
    "link add p1 type veth peer name c1",
    "link add p2 type veth peer name c2",
    "link set p1 master lan",
    "link set p2 master lan",
    ...["lan", "p1", "p2", "c1", "c2"].map((name) => `link set ${name} up`),
    "addr add 203.0.113.1/24 dev lan",
  );
  return router;
}

function near({ prefix }: Netns, scenario: string) {
  const [program, ...args] = [
    ...prefix,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    NEAR,
    scenario,
  ];
  const child = spawn(program as string, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse((await lines.next()).value ?? "null") };
}

const PROGRAMS = ["tc", "filter", "show", "dev", "p1", "ingress"];

test("each bpf() call refused in turn: nothing is left on any port", { skip }, async () => {
  await using router = await bridge();
  const { child, next } = near(router, "fail-each");
  const { creations, updates, failures } = await next();
  await once(child, "exit");
  assert.ok(creations >= 10 && updates >= 4, `${creations} ${updates}`);
  assert.equal(failures.length, updates, "every failed update is told, once");
  assert.equal(await router.run(...PROGRAMS), "");
});

test("a port that does not let go of it: everything else is closed", { skip }, async () => {
  await using router = await bridge();
  const { child, next } = near(router, "stuck");
  const { error, held, left } = await next();
  await once(child, "exit");
  assert.match(error, /Error/);
  assert.deepEqual([held, left], [6, 0]);
});

for (const older of [false, true]) {
  const way = older ? "clsact" : "tcx";
  test(`${way}: a bridge stands for its ports, as they come and go; kill -9`, { skip }, async () => {
    await using router = await bridge();
    const { child, next } = near(router, way);
    const first = await next();
    assert.deepEqual(first.ports, ["p1", "p2"]);
    const { direct, proxy } = first.prefixes;
    assert.deepEqual([direct, proxy], [2, 2]);
    assert.equal((await router.run(...PROGRAMS)).includes("svc-kernel-direct"), older);
    await router.ip(
      "link add p3 type veth peer name c3",
      "link set p3 master lan",
      "link set p2 nomaster",
      "addr add 203.0.113.2/24 dev lan",
    );
    child.stdin.write("go on\n");
    const second = await next();
    assert.deepEqual(second.ports, ["p1", "p3"]);
    assert.equal(second.prefixes.bypass, first.prefixes.bypass + 1);
    assert.deepEqual(second.failures, []);
    await once(child, "exit");
    // It ended without closing anything, as a killed one does.
    assert.equal((await router.run(...PROGRAMS)).includes("svc-kernel-direct"), older);
    assert.equal(await router.run("tc", "filter", "show", "dev", "p2", "ingress"), "");
    const again = near(router, "surplus");
    await again.next();
    await once(again.child, "exit");
    assert.equal(await router.run(...PROGRAMS), "", "the next start cleans up");
  });
}

test("an address that comes while the rules on the marks are being made is passed by", { skip }, async () => {
  await using router = await openNetns("bypasslate");
  await router.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"); // its addresses would come late, too
  await router.ip("link add lan type bridge", "link set lan up");
  const late = join(dirname(NEAR), "netns-bypass-late.ts");
  const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
  assert.equal(await router.run("timeout", "20", ...node, late, "lan"), "1\n");
});

test(
  "kernel-direct.md §4.8: what a killed one left without TCX goes with `weir cleanup`",
  { skip },
  async (t) => {
    await using router = await bridge();
    const { child, next } = near(router, "clsact");
    await next();
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.match(await router.run(...PROGRAMS), /svc-kernel-direct/);
    const home = mkdtempSync(join(tmpdir(), "weir-cleanup-"));
    t.after(() => rmSync(home, { recursive: true }));
    writeFileSync(join(home, "config.yaml"), "mode: rule\n");
    await router.run(WEIR, "cleanup", "-d", home);
    assert.equal(await router.run(...PROGRAMS), "");
  },
);

test(
  "kernel-direct.md §4.8: it goes with the next start, also of a file without a classifier, unless a capture is in force",
  { skip },
  async () => {
    await using router = await bridge();
    const { child, next } = near(router, "clsact");
    await next();
    child.kill("SIGKILL");
    await once(child, "exit");
    await router.nft("table inet svc {}");
    for (const [left, prepare] of [
      [/svc-kernel-direct/, async () => {}],
      [/^$/, () => router.nft("delete table inet svc")],
    ] as const) {
      await prepare();
      await using core = await startCore("mixed-port: 7890\n", { prefix: router.prefix });
      assert.match(await router.run(...PROGRAMS), left);
      assert.equal(await core.stop(), 0);
    }
  },
);

test(
  "kernel-direct.md §4.2: PROXY first, what finds no room is left out and comes back",
  { skip },
  async () => {
    await using router = await bridge();
    const { child, next } = near(router, "surplus");
    const { full, both, few } = await next();
    await once(child, "exit");
    assert.equal(full.ipv4, 10);
    assert.equal(both.ipv4, 10);
    assert.equal(both.proxy, full.proxy + 3);
    assert.deepEqual([few.direct, few.proxy], [2, both.proxy]);
  },
);

test("hosts of the networks around are passed by, whatever is learnt of them", { skip }, async () => {
  await using router = await bridge();
  const { child, next } = near(router, "neighbours");
  const { before, changed, replaced } = await next();
  await once(child, "exit");
  const both = [before[0] + 1, before[1] + 1];
  assert.deepEqual([changed, replaced], [both, both]);
});
