import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { NameserverOptions } from "#core/dns-options.ts";
import { encodeQuestion } from "#dns/query.ts";
import { openSystemUpstream } from "./system.ts";

test("questions that come while resolv.conf is read for the first time go to nobody else", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dns-system-"));
  const resolvConf = join(folder, "resolv.conf");
  await writeFile(resolvConf, "nameserver 192.0.2.1\n");
  const asked = new Set<string>();
  const openServer = ({ host }: NameserverOptions) => ({
    text: host,
    fixed: false,
    exchange: async (query: Uint8Array) => {
      asked.add(host);
      const answer = Buffer.from(query);
      answer[2] = 0x81;
      return answer;
    },
    [Symbol.asyncDispose]: async () => {},
  });
  try {
    const env = { resolvConf, ownAddresses: () => new Set<never>(), openServer, nowMs: () => 0 };
    await using upstream = openSystemUpstream(env);
    const { signal } = new AbortController();
    const ask = (type: number) => upstream.exchange(encodeQuestion("a.org", type), signal);
    await Promise.all([ask(1), ask(28), ask(1)]);
    assert.deepEqual([...asked], ["192.0.2.1"]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
