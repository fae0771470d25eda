/** What a large list took is the system's again soon after it has gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { residentMiB } from "../support/program-load.ts";
import { api, openSite, startWith } from "../support/provider-core.ts";
import { until } from "../support/until.ts";

/** The list in use takes more than this, and so does what is read into it. */
const MOST_LEFT_MIB = 24;

const linesOf = (count: number): string =>
  Array.from({ length: count }, (_, at) => `+.host${at}.example${at % 97}.com\n`).join("");

test("memory comes back behind a large list", async (context) => {
  if (process.platform !== "linux") return context.skip("SKIP resident memory: reads /proc");
  await using site = await openSite();
  site.pages.set("/names", { body: "+.first.example\n" });
  const names = `{ type: http, behavior: domain, format: text, url: 'http://127.0.0.1:${site.port}/names', path: names.txt, interval: 0 }`;
  await using core = await startWith(
    `rule-providers: { names: ${names} }\nrules: ["RULE-SET,names,DIRECT"]\n`,
  );
  const use = async (body: string): Promise<void> => {
    site.pages.set("/names", { body });
    assert.equal((await api(core, "/providers/rules/names", { method: "PUT" })).status, 204);
  };
  await use(linesOf(5_000)); // code that runs for the first time stays
  const before = residentMiB(core.pid);
  await use(linesOf(1_000_000));
  const during = residentMiB(core.pid);
  await use("+.third.example\n");
  const left = (): number => Math.round(residentMiB(core.pid) - before);
  await until(
    () => `${left()} MiB of ${Math.round(during - before)} are left`,
    () => left() < MOST_LEFT_MIB,
    { withinMs: 30_000 },
  );
});
