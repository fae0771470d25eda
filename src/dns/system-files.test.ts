import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Slices } from "#core/slices.ts";
import { KnownNames } from "#net/address/known-names.ts";
import { ipOf } from "#net/address/ip.ts";
import { until } from "../../test/support/until.ts";
import { openHosts, parseHostsFile } from "./hosts.ts";
import { SharedAnswers } from "./shared-answers.ts";
import { parseDhclientLease, parseNetworkdLease } from "./upstream/dhcp.ts";
import { parseResolvConf } from "./upstream/system.ts";

test("resolv.conf, hosts and leases as they come", () => {
  const text =
    "# x\nnameserver 192.0.2.1\n  nameserver fe80::1%eth0\nsearch a.org\nnameserver bad\n#nameserver 1.1.1.1\n";
  assert.deepEqual(parseResolvConf(text), ["192.0.2.1", "fe80::1"]);
  const hosts = parseHostsFile(
    "127.0.0.1 localhost\n::1 localhost ip6\n10.0.0.1\tA.org. b.org # c.org\nbad d.org\n",
  );
  assert.deepEqual(
    [...hosts],
    [
      ["localhost", ["127.0.0.1", "::1"]],
      ["ip6", ["::1"]],
      ["a.org", ["10.0.0.1"]],
      ["b.org", ["10.0.0.1"]],
    ],
  );
  assert.deepEqual(parseNetworkdLease("ADDRESS=10.0.0.9\nDNS=10.0.0.1 10.0.0.2\n"), ["10.0.0.1", "10.0.0.2"]);
  const lease = (ip: string) => `lease {\n  option domain-name-servers ${ip}, 10.0.0.2;\n}\n`;
  assert.deepEqual(parseDhclientLease(lease("10.0.0.8") + lease("10.0.0.1")), ["10.0.0.1", "10.0.0.2"]);
  assert.deepEqual(parseDhclientLease(""), []);
});

test("the system's hosts file is asked after the table, for exact names", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dns-hosts-"));
  const systemFile = join(folder, "hosts");
  await writeFile(systemFile, "10.0.0.1 a.org b.org\n");
  try {
    const alias = { kind: "alias", name: "b.org" } as const;
    const addresses = { kind: "addresses", addresses: ["10.0.0.9" as never] } as const;
    const entries = [
      { pattern: "a.org", value: addresses },
      { pattern: "c.org", value: alias },
      { pattern: "me.lan", value: { kind: "lan" } as const },
    ];
    const hosts = await openHosts({ entries, systemFile, nowMs: () => 0, slices: new Slices() });
    assert.deepEqual(hosts.find("a.org"), { name: "a.org", addresses: ["10.0.0.9"] });
    assert.deepEqual(hosts.find("b.org"), { name: "b.org", addresses: ["10.0.0.1"] });
    assert.deepEqual(hosts.find("c.org"), { name: "b.org", addresses: ["10.0.0.1"] });
    assert.equal(hosts.find("www.b.org"), null);
    assert.ok(Array.isArray(hosts.find("me.lan")?.addresses));
    assert.equal(hosts.find("me.lan")?.addresses?.includes("127.0.0.1" as never), false);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("what other threads know is believed until the hosts file is looked at again, and forgotten where that has changed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dns-hosts-"));
  const systemFile = join(folder, "hosts");
  await writeFile(systemFile, "10.0.0.1 a.org\n");
  try {
    let nowMs = 1_790_000_000_000;
    const answers = new SharedAnswers(() => nowMs);
    const env = { entries: [], systemFile, nowMs: () => nowMs, slices: new Slices(), watcher: answers };
    const hosts = await openHosts(env);
    const known = new KnownNames(answers.memory);
    answers.pin("a.org", [ipOf("10.0.0.1")]);
    assert.equal(known.pinned("a.org", nowMs + 4_000), "10.0.0.1");
    nowMs += 6_000;
    assert.equal(known.pinned("a.org", nowMs), null, "the file may be another one");
    hosts.find("b.org");
    assert.equal(known.pinned("a.org", nowMs), "10.0.0.1", "it is looked at now");
    await writeFile(systemFile, "10.0.0.22 a.org\n");
    nowMs += 6_000;
    hosts.find("b.org");
    await until("the file is read", () => hosts.find("a.org")?.addresses?.[0] === "10.0.0.22");
    assert.equal(known.pinned("a.org", nowMs), null);
  } finally {
    await rm(folder, { recursive: true });
  }
});
