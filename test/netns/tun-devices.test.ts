/** A TUN that is a listener, comes from another program, follows route sets, fakes addresses, or cannot be opened. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openRoutedRow } from "../support/netns-far-away.ts";
import { FAMILIES } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";
import {
  config,
  controller,
  curl,
  DEVICE,
  logged,
  MARK_MODE,
  patch,
  ROUTED,
  SECRET,
  sessions,
  skip,
  traces,
  tunOf,
  v4,
} from "../support/tun-row.ts";
import { until } from "../support/until.ts";

const WITH_TUN = fileURLToPath(new URL("../support/with-tun.ts", import.meta.url));

test(
  "configuration §9.4: a listener of type tun, with routes that another program makes",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openRoutedRow("tunlist");
    const { client, router } = row;
    await using core = await startCore(
      `
log-level: debug
listeners:
  - { name: lan, type: tun, device: ${DEVICE}, inet4-address: [10.77.0.1/24], inet6-address: ["fd77::1/64"], gso: true }
dns: { enable: true, nameserver: ["${v4.origin}"] }
rules: ["AND,((IN-NAME,lan),(IN-TYPE,TUN),(DST-PORT,80)),REJECT", "IN-NAME,lan,DIRECT", "MATCH,REJECT"]
interface-name: up0
`,
      { prefix: router.prefix },
    );
    // What comes from clients goes into the device, what weir sends itself does not.
    await router.ip("route add default dev weir-tun0 table 77", "rule add iif down0 lookup 77 priority 100");
    await router.ip(
      "-6 route add default dev weir-tun0 table 77",
      "-6 rule add iif down0 lookup 77 priority 100",
    );
    for (const { origin, url } of FAMILIES) {
      assert.equal(await row.near("many", origin, 7, 20), "20 echoed");
      assert.equal(await row.near("udp", origin, 7, 1000), "echo of 1000");
      await assert.rejects(curl(client, url));
    }
    assert.equal(await core.stop(), 0);
    assert.deepEqual(await traces(row), []);
  },
);

test(
  "transparent-proxy §5: a device that another program has opened and set up is used as it is",
  { skip, timeout: 120_000 },
  async () => {
    await using row = await openRoutedRow("tunfd");
    const { router } = row;
    const numbered = (descriptor: number) => `
log-level: debug
external-controller: 127.0.0.1:9090
secret: ${SECRET}
tun: { enable: true, file-descriptor: ${descriptor}, inet6-address: ["fd77::1/64"], auto-route: true }
dns: { enable: true, nameserver: ["${v4.origin}"] }
rules: ["MATCH,DIRECT"]
`;
    const opener = ["198.18.0.1/30", "fd77::1/64", "--"];
    const giving = [
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      WITH_TUN,
      DEVICE,
      "100",
      ...opener,
    ];
    const core = await startCore(numbered(100), { prefix: [...router.prefix, ...giving] });
    await using _ = core;
    await core.shows(new RegExp(`listening on ${DEVICE}`));
    assert.deepEqual(
      (await traces(row)).filter((line) => !line.startsWith(DEVICE)),
      [],
      "no rules, no routes",
    );
    assert.match(await router.run("ip", "-br", "address", "show", DEVICE), /198\.18\.0\.1\/30 fd77::1\/64/);
    for (const family of ["", "-6 "])
      await router.ip(
        `${family}route add default dev ${DEVICE} table 77`,
        `${family}rule add iif down0 lookup 77 priority 100`,
      );
    for (const { origin, url } of FAMILIES) {
      assert.match(await curl(row.client, url), /^hello/);
      assert.equal(await row.near("many", origin, 7, 20), "20 echoed");
      assert.equal(await row.near("udp", origin, 7, 1000), "echo of 1000");
    }
    await logged(core, "TCP", 42); // all of it came through weir
    await logged(core, "UDP", 2);
    assert.equal(await core.stop(), 0);
    assert.doesNotMatch(
      await router.run("ip", "-br", "link"),
      new RegExp(DEVICE),
      "it went with its descriptor",
    );

    // Standard output: whatever number stands there, it is not closed.
    await using refused = await startCore(numbered(1), { prefix: router.prefix });
    assert.match(refused.output(), /level=error msg="tun\.file-descriptor 1: TUNGETIFF/);
    assert.match(await controller(row, "/configs"), /"file-descriptor":1/);
    assert.equal(await refused.stop(), 0);
    assert.match(refused.output(), /shutting down/);
  },
);

test("route sets follow their rule providers", { skip, timeout: 60_000 }, async () => {
  await using row = await openRoutedRow("tunsets");
  const { client, router } = row;
  const file = (home: string, text: string) => writeFileSync(join(home, "around.txt"), text);
  const provider = "around: { type: file, behavior: ipcidr, format: text, path: ./around.txt }";
  await using core = await startCore(
    config(
      `${MARK_MODE}, route-exclude-address-set: [around]`,
      '"MATCH,DIRECT"',
      `rule-providers: { ${provider} }\n`,
    ),
    { prefix: router.prefix, seed: (home) => file(home, "192.0.2.0/24\n") },
  );
  assert.match(await curl(client, v4.url), /^hello/);
  await logged(core, "TCP", 1);
  file(core.home, `192.0.2.0/24\n${v4.origin}/32\n`);
  await controller(row, "/providers/rules/around", "-f", "-X", "PUT");
  const excluded = async () => (await router.run("nft", "list", "table", "inet", "svc")).includes(v4.origin);
  await until("the set changes", excluded);
  assert.match(await curl(client, v4.url), /^hello/);
  assert.equal(await row.near("udp", v4.origin, 7, 10), "echo of 10");
  assert.deepEqual([sessions(core, "TCP"), sessions(core, "UDP")], [1, 0]);
  assert.equal(await core.stop(), 0);
});

test("fake addresses, and a TUN that cannot be opened", { skip, timeout: 60_000 }, async (t) => {
  await using row = await openRoutedRow("tunfake");
  const { client, router } = row;
  const text = (device: string, more = "") =>
    config(`${ROUTED}, gso: true`, '"DOMAIN,www.origin.test,DIRECT","MATCH,REJECT"', more)
      .replace("redir-host", "fake-ip")
      .replace(`device: ${DEVICE}`, `device: ${device}`);
  await using core = await startCore(text("a-name-that-is-too-long"), { prefix: router.prefix });

  await t.test(
    "configuration §1: at the start it is logged, and no change of something else fails",
    async () => {
      assert.match(core.output(), /level=error msg="tun.device a-name/);
      assert.equal((await tunOf(row))["enable"], false);
      assert.match(await patch(row, { "allow-lan": true }), /204$/);
      assert.match(await patch(row, { tun: { enable: true } }), /500$/);
      assert.match(await patch(row, { tun: { device: DEVICE } }), /204$/);
    },
  );

  await t.test("a faked name carries TCP and UDP, and replies come from the faked address", async () => {
    const fake = await row.near("dns", "192.0.2.53");
    assert.match(fake, /^198\.18\.0\.\d+$/);
    assert.match(await curl(client, `http://${fake}/`), /^hello to /);
    assert.equal(await row.near("udp", fake, 7, 100), "echo of 100");
    assert.match(await client.run("ping", "-n", "-c", "1", "-W", "2", fake), / 1 received/);
    assert.match(core.output(), /www\.origin\.test:80/);
  });

  await t.test("a global routing-mark beside auto-redirect is refused", async () => {
    await core.reload(
      text(DEVICE, "routing-mark: 7\n").replace("auto-redirect: false", "auto-redirect: true"),
      /routing-mark: tun\.auto-redirect marks every socket itself/,
    );
    const fake = await row.near("dns", "192.0.2.53");
    assert.match(await curl(client, `http://${fake}/`), /^hello to /);
  });
  assert.equal(await core.stop(), 0);
});
