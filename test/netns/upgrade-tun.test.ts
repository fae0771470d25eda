/** Another process takes over from the one whose TUN a router's ip rules lead to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { DEATHS, FailingLaunchers } from "../support/failing-launchers.ts";
import { isPlainlyConnected, openRoutedRow, PASSED_BY, passedBy } from "../support/netns-far-away.ts";
import { FAMILIES, leftovers, type Row, type Talk } from "../support/netns-row.ts";
import { config, MARK_MODE, ROUTED, skip, traces } from "../support/tun-row.ts";
import { openUpgradedCore } from "../support/upgraded-core.ts";
import { until } from "../support/until.ts";

/** A connection and a UDP socket of the client that go on. */
function holding(row: Row, origin: string) {
  const held = row.talk("hold", origin, 7);
  return async (line: string): Promise<void> => {
    held.say(line);
    assert.deepEqual([await held.nextLine(), await held.nextLine()].toSorted(), [
      `tcp ${line}`,
      `udp 7:${line}`,
    ]);
  };
}

async function checkSteady(load: Talk): Promise<void> {
  load.close();
  const { tcp, udp, faults }: { tcp: number; udp: number; faults: string[] } = JSON.parse(
    await load.nextLine(),
  );
  assert.deepEqual(faults, []);
  assert.ok(tcp > 20 && udp > 4, `${tcp} connections, ${udp} flows`);
}

for (const [mode, more, onExit] of [
  [ROUTED, "gso: true", "open"],
  [ROUTED, "gso: false, on-exit: closed", "closed"],
  [MARK_MODE, "strict-route: true", "open"],
  [MARK_MODE, "on-exit: closed", "closed"],
] as const)
  test(
    `a TUN with auto-${mode === ROUTED ? "route" : "redirect"}, ${more}: nothing is refused, lost or passes it by`,
    { skip, timeout: 300_000 },
    async () => {
      await using row = await openRoutedRow("uptun");
      await row.router.nft(PASSED_BY);
      await using upgraded = await openUpgradedCore(config(`${mode}, ${more}`), row.router.prefix);
      const { core } = upgraded;
      const before = await traces(row);
      const rounds = FAMILIES.map(({ origin }) => holding(row, origin));
      const round = async (line: string) => {
        for (const one of rounds) await one(line);
      };
      const loads = FAMILIES.map(({ origin }) => row.talk("steady", origin, 7));
      for (const load of loads) assert.equal(await load.nextLine(), "begun");
      await round("one");
      const first = upgraded.pid;
      await upgraded.upgrade();
      await round("two");
      const second = upgraded.pid;
      await upgraded.upgrade();
      await round("three");
      for (const load of loads) await checkSteady(load);
      await upgraded.end(first);
      await upgraded.end(second);
      for (const { origin } of FAMILIES) {
        assert.equal(await row.near("many", origin, 7, 100), "100 echoed");
        assert.equal(await row.near("udp", origin, 7, 1400), "echo of 1400");
        assert.equal(await row.near("dns", origin), "198.51.100.2");
      }
      await until("the same device, rules, routes and tables are there", async () =>
        isDeepStrictEqual(await traces(row), before),
      );
      assert.equal(await passedBy(row), 0);
      assert.doesNotMatch(core.output(), /level=(error|fatal)/);
      await upgraded.end(upgraded.pid);
      if (onExit === "closed") {
        assert.equal(await isPlainlyConnected(row), false);
        assert.equal(await passedBy(row), 0);
      } else await until("the router forwards", () => isPlainlyConnected(row));
    },
  );

for (const mode of [ROUTED, MARK_MODE])
  test(`a new process that fails leaves the TUN as it was: ${mode}`, { skip, timeout: 300_000 }, async () => {
    using launchers = new FailingLaunchers();
    await using row = await openRoutedRow("uptun");
    await row.router.nft(PASSED_BY);
    const text = config(mode);
    await using upgraded = await openUpgradedCore(text, row.router.prefix);
    const before = await traces(row);
    const round = holding(row, FAMILIES[0].origin);
    const load = row.talk("steady", FAMILIES[0].origin, 7);
    assert.equal(await load.nextLine(), "begun");
    await round("begun");
    for (const step of DEATHS) {
      await assert.rejects(upgraded.upgrade(launchers.path(step)), /it has ended \(ended with SIGKILL\)/);
      await round(step);
    }
    const { core } = upgraded;
    for (const other of [
      text.replace("tun: {", "tun: { mtu: 1400, "),
      text.replace("enable: true", "enable: false"),
    ]) {
      core.write(other);
      await assert.rejects(
        upgraded.upgrade(),
        /a TUN goes to another process as it is, and the file has changed/,
      );
      await round("the file has changed");
    }
    await checkSteady(load);
    await until("all is as before", async () => isDeepStrictEqual(await traces(row), before));
    assert.equal(await passedBy(row), 0);
  });

test(
  "fake addresses stand for their names in the next process, too",
  { skip, timeout: 300_000 },
  async () => {
    await using row = await openRoutedRow("uptun");
    await row.router.nft(PASSED_BY);
    const text = config(`${ROUTED}, dns-hijack: ["any:53"]`).replace("redir-host", "fake-ip");
    await using upgraded = await openUpgradedCore(text, row.router.prefix);
    const { origin } = FAMILIES[0];
    const given: string[] = [];
    for (const kind of [1, 2, 3]) {
      const fake = await row.near("dns", origin, kind);
      assert.match(fake, /^198\.18\./);
      assert.ok(!given.includes(fake), `${fake} is given to two names`);
      given.push(fake);
      const held = holding(row, fake);
      await held("before");
      const load = row.talk("steady", fake, 7);
      assert.equal(await load.nextLine(), "begun");
      await upgraded.upgrade();
      await held("behind");
      await checkSteady(load);
      for (const [at, each] of given.entries()) {
        assert.equal(await row.near("many", each, 7, 20), "20 echoed");
        assert.equal(await row.near("dns", origin, at + 1), each);
      }
    }
    assert.equal(await passedBy(row), 0);
    assert.doesNotMatch(upgraded.core.output(), /level=(error|fatal)/);
  },
);

for (const mode of [ROUTED, MARK_MODE])
  test(
    `an old process that is killed in the middle lets nothing pass: ${mode}`,
    { skip, timeout: 300_000 },
    async () => {
      await using row = await openRoutedRow("uptun");
      await row.router.nft(PASSED_BY);
      await using upgraded = await openUpgradedCore(config(mode), row.router.prefix);
      const { core, pid } = upgraded;
      const before = await traces(row);
      const load = row.talk("steady", FAMILIES[0].origin, 7); // what is open in it ends with it
      assert.equal(await load.nextLine(), "begun");
      const asked = upgraded.upgrade().catch((error: unknown) => error);
      await core.shows(/listening on weir-tun0[^]*listening on weir-tun0/);
      process.kill(pid, "SIGKILL");
      await asked;
      await until("one serves", () => upgraded.alive().length === 1 && !upgraded.alive().includes(pid));
      await until("it has been said", () => /has died; this one takes its place/.test(core.output()));
      for (const { origin } of FAMILIES) {
        assert.equal(await row.near("many", origin, 7, 50), "50 echoed");
        assert.equal(await row.near("udp", origin, 7, 1400), "echo of 1400");
      }
      load.close();
      await until("all is as before", async () => isDeepStrictEqual(await traces(row), before));
      assert.equal(await passedBy(row), 0);
    },
  );

test("nothing is left behind", { skip }, () => assert.deepEqual(leftovers("uptun"), []));
