/** Client – router – origin: TCP that the router's nftables redirects goes through weir, and nothing else would get there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, leftovers, manual, openRow } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("redir", "nft", "curl");

const config = (rules: string) => `
redir-port: 7892
allow-lan: true
routing-mark: 6666
interface-name: up0
log-level: debug
rules: [${rules}]
`;

test("redirected TCP reaches where it was going", { skip, timeout: 120_000 }, async (t) => {
  await using row = await openRow("redir");
  const { client, router } = row;
  await router.nft(manual("redir", "nft"));
  await using core = await startCore(config('"MATCH,DIRECT"'), { prefix: router.prefix });
  const curl = (from: typeof client, url: string) => from.run("curl", "-sS", "--max-time", "15", url);
  const sessions = () => core.output().match(/\[TCP\] .*-->/g)?.length ?? 0;

  for (const { name, router: own, origin, url } of FAMILIES) {
    await t.test(`${name}: a client's request`, async () => {
      assert.equal(await curl(client, url), `hello to ${name === "IPv4" ? `::ffff:${origin}` : origin}`);
      assert.match(
        core.output(),
        new RegExp(`\\[TCP\\] .*${name === "IPv4" ? "203.0.113.2" : "fd00:1::2"}.*`),
      );
    });
    await t.test(`${name}: 200 connections at once`, async () => {
      assert.equal(await row.near("many", origin, 7, 200), "200 echoed");
    });
    await t.test(`${name}: the listener's own address is reset`, async () => {
      assert.equal(await row.near("end", own, 7892), "ECONNRESET");
    });
    await t.test(`${name}: the router's own programs are captured once, weir never`, async () => {
      const before = sessions();
      assert.match(await curl(router, url), /^hello to /);
      assert.equal(sessions() - before, 1);
    });
  }

  await t.test("a reload keeps the connection, new ones obey the new rules", async () => {
    const [v4] = FAMILIES;
    const held = row.talk("hold", v4.origin, 7);
    held.say("one");
    assert.equal(await held.hear(), "tcp one");
    core.write(config('"MATCH,REJECT"'));
    process.kill(core.pid, "SIGHUP");
    await core.shows(/reload|REJECT/i);
    held.say("two");
    assert.equal(await held.hear(), "tcp two");
    await assert.rejects(curl(client, v4.url), /curl/);
    held.say("three");
    assert.equal(await held.hear(), "tcp three");
  });
  assert.doesNotMatch(core.output(), /level=(error|fatal)/);
});

test("nothing is left behind", { skip }, () => assert.deepEqual(leftovers("redir"), []));
