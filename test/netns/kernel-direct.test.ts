/** Client – router with kernel-direct – Internet: what the rules prove DIRECT arrives from the client's own address. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import {
  skip,
  far,
  NUMBERS,
  config,
  openWorld,
  ask,
  ways,
  sourcesOf,
  api,
  learnt,
  start,
} from "../support/kernel-direct-world.ts";
import { startCore, type Core } from "../support/start-core.ts";
import type { Transit } from "../support/transit.ts";

test("the sets of nftables", { skip, timeout: 120_000 }, async (t) => {
  await using row = await openWorld("bypass");
  const { client, router } = row;
  await using core = await start(row, config());

  await t.test("what was not resolved before goes through the proxy", async () => {
    assert.equal(await ways(row, NUMBERS.direct), "proxy");
    await api(router, "PATCH", "/configs", { mode: "global" }); // forget what these flows taught
    await api(router, "PATCH", "/configs", { mode: "rule" });
  });
  await t.test(
    "kernel-direct §8.1: after the answer the very first connection stays in the kernel",
    async () => {
      assert.deepEqual(await ask(row, "direct"), [...far(NUMBERS.direct)]);
      assert.equal(await ways(row, NUMBERS.direct), "kernel");
      assert.deepEqual(
        [await learnt(router), await learnt(router, 6)],
        far(NUMBERS.direct).map((each) => [each]),
      );
      for (const host of far(NUMBERS.direct)) {
        await row.arrivals.forget();
        await Promise.all([row.near("silence", host, 7), client.run("ping", "-c1", "-W1", host)]);
        const arrivals = await row.arrivals.list();
        assert.deepEqual([arrivals.length, sourcesOf(arrivals)], [2, "kernel"], "UDP and ICMP");
      }
    },
  );
  await t.test(
    "transparent-proxy §12.5: DNS to a learned address is answered by the service, UDP and TCP",
    async () => {
      await row.arrivals.forget();
      for (const server of far(NUMBERS.direct))
        assert.deepEqual(await ask(row, "proxied", server), [...far(NUMBERS.proxied)]);
      const overTcp = await client.run("dig", "+short", "+tcp", `@${far(NUMBERS.direct)[0]}`, "proxied.test");
      assert.equal(overTcp.trim(), far(NUMBERS.proxied)[0]);
      assert.deepEqual(await row.arrivals.list(), []);
      assert.equal(await ways(row, NUMBERS.proxied), "proxy");
    },
  );
  await t.test(
    "dns.md §16.13, kernel-direct §8.2: a shared address leaves the set before the second answer",
    async () => {
      await ask(row, "shared");
      assert.equal(await ways(row, NUMBERS.shared), "kernel");
      await ask(row, "also");
      assert.equal(await ways(row, NUMBERS.shared), "proxy");
      await ask(row, "shared");
      assert.equal(await ways(row, NUMBERS.shared), "proxy", "until the PROXY record expires");
    },
  );
  await t.test("kernel-direct §8.5: a selector on DIRECT; switched, the set is empty at once", async () => {
    await ask(row, "chosen");
    assert.equal(await ways(row, NUMBERS.chosen), "kernel");
    await api(router, "PUT", "/proxies/CHOICE", { name: "PX" });
    assert.deepEqual(await learnt(router), []);
    assert.equal(await ways(row, NUMBERS.chosen), "proxy");
    await ask(row, "chosen");
    assert.equal(await ways(row, NUMBERS.chosen), "proxy");
  });
  await changes(t, row, core);
  await t.test("status", async () => {
    await ask(row, "direct");
    await ask(row, "proxied");
    const { body } = (await api(router, "GET", "/api/svc/kernel-direct/status")) as {
      body: Record<string, unknown>;
    };
    const [set] = body["learned_sets"] as Record<string, number>[];
    assert.equal(body["backend"], "nftables");
    assert.deepEqual(body["fast_paths"], []);
    assert.equal(set?.["max_entries"], 4096);
    assert.ok((set?.["direct_addresses"] ?? 0) >= 2 && (set?.["proxy_addresses"] ?? 0) >= 2);
    assert.equal(
      set?.["learned_addresses"],
      (set?.["direct_addresses"] ?? 0) + (set?.["proxy_addresses"] ?? 0),
    );
  });
  await t.test("kernel-direct §8.7: the number of entries by PATCH", async () => {
    const entries = async () => {
      const { body } = (await api(router, "GET", "/configs")) as { body: { tun: Record<string, unknown> } };
      return [body.tun["enable"], body.tun["kernel-direct-max-entries"]];
    };
    const patch = async (count: number) =>
      (
        (await api(router, "PATCH", "/configs", { tun: { "kernel-direct-max-entries": count } })) as {
          status: number;
        }
      ).status;
    assert.equal(await patch(0), 204);
    assert.deepEqual(await entries(), [true, 4096]);
    assert.equal(await patch(65_536), 204);
    assert.deepEqual(await entries(), [true, 65_536]);
    assert.equal(await patch(65_537), 400);
    assert.deepEqual(await entries(), [true, 65_536]);
  });
  assert.equal(await core.stop(), 0);
  assert.equal(await ways(row, NUMBERS.proxied), "kernel", "plain forwarding");
});

/** Each kind of change empties the set before it answers. */
async function changes(t: TestContext, row: Transit, core: Core): Promise<void> {
  const { router } = row;
  const cases: Readonly<Record<string, () => Promise<unknown>>> = {
    "the mode": async () => {
      await api(router, "PATCH", "/configs", { mode: "global" });
    },
    "a rule switched off": async () => {
      await api(router, "PATCH", "/configs", { mode: "rule" });
      await ask(row, "direct");
      await api(router, "PATCH", "/rules/disable", { "0": true });
    },
    "a reload": async () => {
      await ask(row, "direct");
      core.write(config({ rules: ["DOMAIN,direct.test,PX"] }));
      await api(router, "PUT", "/configs?force=true", { path: "", payload: "" });
    },
  };
  for (const [what, change] of Object.entries(cases))
    await t.test(`${what} empties the set`, async () => {
      await ask(row, "direct");
      await change();
      assert.deepEqual(await learnt(router), []);
    });
  await t.test("the rules of before are back", async () => {
    core.write(config());
    await api(router, "PUT", "/configs?force=true", { path: "", payload: "" });
    await ask(row, "direct");
    assert.equal(await ways(row, NUMBERS.direct), "kernel");
  });
}

test(
  "kernel-direct §8.3: a process rule to a proxy above: nothing is learnt",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openWorld("process");
    await using core = await start(
      row,
      config({ rules: ["PROCESS-NAME,unknown,PX", "DOMAIN,direct.test,DIRECT"] }),
    );
    await ask(row, "direct");
    assert.deepEqual(await learnt(row.router), []);
    assert.equal(await ways(row, NUMBERS.direct), "proxy");
    assert.equal(await core.stop(), 0);
  },
);

test(
  "kill -9: connected within a second, and the next start finds nothing in its way",
  { skip, timeout: 60_000 },
  async () => {
    await using row = await openWorld("killed");
    {
      await using core = await start(row, config());
      await ask(row, "direct");
      assert.equal(await ways(row, NUMBERS.proxied), "proxy");
      await core.stop("SIGKILL");
    }
    assert.equal(await ways(row, NUMBERS.proxied), "kernel");
    await using again = await start(row, config());
    assert.equal(await ways(row, NUMBERS.proxied), "proxy");
    await ask(row, "direct");
    assert.equal(await ways(row, NUMBERS.direct), "kernel");
    assert.equal(await again.stop(), 0);
  },
);

test("a rule provider's new contents answer for an empty set", { skip, timeout: 60_000 }, async () => {
  await using row = await openWorld("provider");
  const { router } = row;
  const text = `${config({ rules: ["RULE-SET,list,DIRECT"] })}
rule-providers: { list: { type: file, behavior: domain, format: text, path: ./list.txt } }
`;
  const seed = (home: string) => writeFileSync(join(home, "list.txt"), "direct.test\n");
  await using core = await startCore(text, { prefix: router.prefix, seed });
  await ask(row, "direct");
  assert.equal(await ways(row, NUMBERS.direct), "kernel");
  writeFileSync(join(core.home, "list.txt"), "other.test\n");
  await api(router, "PUT", "/providers/rules/list");
  assert.deepEqual(await learnt(router), []);
  assert.equal(await ways(row, NUMBERS.direct), "proxy");
  await ask(row, "direct");
  assert.equal(await ways(row, NUMBERS.direct), "proxy");
  assert.equal(await core.stop(), 0);
});
