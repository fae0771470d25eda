/** Answers of DNS that are longer than a packet of the LAN, to clients that asked another server through the TUN. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { openTransit } from "../support/transit.ts";

const skip = skipNetns("tun answers", "nft", "dig");
/** Of 28 bytes each in the answer. */
const ADDRESSES = Array.from({ length: 60 }, (_, at) => `2001:db8::${at + 1}`);

for (const redirects of [false, true])
  test(
    `an answer of 1,700 bytes arrives over IPv4 and IPv6, auto-redirect ${redirects}`,
    { skip },
    async () => {
      await using row = await openTransit("tunanswers");
      const { client, router } = row;
      await using core = await startCore(
        `
ipv6: true
dns: { enable: true, ipv6: true, enhanced-mode: redir-host, nameserver: ["192.0.2.2"] }
hosts: { big.test: [${ADDRESSES.map((each) => `"${each}"`).join()}] }
tun: { enable: true, auto-route: true, auto-redirect: ${redirects}, auto-detect-interface: ${!redirects} }
rules: ["MATCH,DIRECT"]
`,
        { prefix: router.prefix },
      );
      for (const server of ["192.0.2.99", "2001:db8:9::99"]) {
        const asks = [
          "dig",
          "+short",
          "+time=2",
          "+tries=1",
          "+bufsize=4096",
          `@${server}`,
          "big.test",
          "AAAA",
        ];
        const answer = await client.run(...asks);
        assert.equal(answer.trim().split("\n").length, ADDRESSES.length, server);
      }
      assert.equal(await core.stop(), 0);
    },
  );
