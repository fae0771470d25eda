/** Client – router – origin: TCP that the router's nftables redirects goes through weir, and nothing else would get there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, checkCapturedTcp, logShown, RELAYS } from "../support/netns-captured.ts";
import { skipNetns } from "../support/netns.ts";
import { FAMILIES, leftovers, openRow } from "../support/netns-row.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("redir", "nft", "curl");

const config = (relay: string, rules: string) => `
relay: ${relay}
redir-port: 7892
allow-lan: true
routing-mark: 6666
interface-name: up0
log-level: debug
dns:
  enable: true
  listen: 203.0.113.1:53
  enhanced-mode: fake-ip
  nameserver: ["${FAMILIES[0].origin}"]
rules: [${rules}]
`;

for (const relay of RELAYS)
  test(
    `relay: ${relay}: redirected TCP reaches where it was going`,
    { skip, timeout: 120_000 },
    async (t) => {
      await using row = await openRow("redir");
      const { client, router } = row;
      await capture(row, "redir");
      await using core = await startCore(config(relay, '"MATCH,DIRECT"'), { prefix: router.prefix });
      const curl = (from: typeof client, url: string) => from.run("curl", "-sS", "--max-time", "15", url);
      const captured = { row, core, by: "redir" } as const;
      const sessions = () => core.output().match(/\[TCP\] .*-->/g)?.length ?? 0;

      for (const family of FAMILIES) {
        const { name, origin, url } = family;
        await t.test(`${name}: a client's request`, async () => {
          assert.equal(await curl(client, url), `hello to ${name === "IPv4" ? `::ffff:${origin}` : origin}`);
          await core.shows(new RegExp(`\\[TCP\\] .*${name === "IPv4" ? "203.0.113.2" : "fd00:1::2"}.*`));
        });
        await checkCapturedTcp(t, captured, family);
        await t.test(`${name}: the router's own programs are captured once, weir never`, async () => {
          await logShown(captured);
          const before = sessions();
          assert.match(await curl(router, url), /^hello to /);
          await logShown(captured);
          assert.equal(sessions() - before, 1);
        });
      }

      await t.test("a fake address is the name that it was given for", async () => {
        const fake = await row.near("dns", FAMILIES[0].router);
        assert.match(fake, /^198\.18\./);
        assert.match(await curl(client, `http://${fake}/`), /^hello to /);
        await core.shows(/\[TCP\] .*--> www\.origin\.test:80 /);
      });

      await t.test("a reload keeps the connection, new ones obey the new rules", async () => {
        const [v4] = FAMILIES;
        const held = row.talk("hold", v4.origin, 7);
        held.say("one");
        assert.equal(await held.nextLine(), "tcp one");
        await core.reload(config(relay, '"MATCH,REJECT"'));
        held.say("two");
        assert.equal(await held.nextLine(), "tcp two");
        await assert.rejects(curl(client, v4.url), /curl/);
        held.say("three");
        assert.equal(await held.nextLine(), "tcp three");
      });
      assert.doesNotMatch(core.output(), /level=(error|fatal)/);
    },
  );

test("nothing is left behind", { skip }, () => assert.deepEqual(leftovers("redir"), []));
