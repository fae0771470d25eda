/** What a thread needed to read a large document is the system's again when it has ended. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { api, startWith } from "../support/provider-core.ts";
import { until } from "../support/until.ts";

/** Where the pages of ended threads are kept for others, some 240 MiB stay. */
const MOST_GROWN_MIB = 80;

test("a hostile configuration by PUT is refused and leaves next to no memory behind", async (context) => {
  if (process.platform !== "linux") return context.skip("reads /proc");
  await using core = await startWith("rules: ['MATCH,DIRECT']\n");
  const residentMiB = (): number => {
    const [, kiB] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${core.pid}/status`, "utf8")) ?? [];
    return Number(kiB) / 1024;
  };
  const put = (payload: string) =>
    api(core, "/configs", { method: "PUT", body: JSON.stringify({ payload }) });
  assert.equal((await put(`proxies: ${"[".repeat(100_000)}`)).status, 400); // what a first reading leaves is no growth
  const before = residentMiB();
  const answer = await put(`proxy-groups: [${"{a: 1},".repeat(40_000)}]`);
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /payload:1:\d+ proxy-groups\[0\]/);
  const grown = (): number => residentMiB() - before;
  await until(
    () => `${Math.round(grown())} MiB more than before`,
    () => grown() < MOST_GROWN_MIB,
  );
});
