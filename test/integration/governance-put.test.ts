/** A PUT of the policies is all or nothing: whatever fails, everything is as it was, and goes on. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startGoverned, statusOf, type GovernedCore } from "../support/governed-core.ts";
import { SILENT } from "#core/log.ts";
import { PARTS } from "#governance/store.ts";
import { Store } from "#store/backup.ts";
import { startCore } from "../support/start-core.ts";
import { openTcpOrigin } from "../support/origin.ts";

const BLOCK = `  enabled: true # since spring
  portal: { listen: 127.0.0.1:0 }
  # a device of ours
  devices:
    - { id: phone, source-cidrs: [127.0.0.0/8], quota: { total-bytes: 9000000, window: 1h } } # its quota
`;

interface Envelope {
  readonly revision: number;
  readonly config: Readonly<Record<string, unknown>>;
}

const getPolicies = (governed: GovernedCore) => governed.call<Envelope>("GET", "traffic-control/policies");

test("§11.6 §8.3 whatever fails: the same document to the byte, the same revision, portal and journal alive", async () => {
  await using governed = await startGoverned(BLOCK);
  await governed.transfer(100, 5000);
  const before = await getPolicies(governed);
  const { revision, config } = before.body;
  await using taken = await openTcpOrigin(() => {});
  const busy = `127.0.0.1:${taken.port}`;
  const device = (config["devices"] as object[])[0];
  const { home } = governed.core;
  {
    using large = Store.open({ path: join(home, "large.db"), parts: PARTS, nowMs: Date.now, log: SILENT });
    large.commit([{ part: "reports", key: "large", value: randomBytes(5 * 1024 * 1024) }], { backup: true });
  }
  mkdirSync(join(home, "shared"));
  chmodSync(join(home, "shared"), 0o777);
  const rows: readonly (readonly [what: string, status: number, change: object])[] = [
    ["a portal port that is taken", 500, { portal: { listen: busy }, devices: [] }],
    ["a store in a folder that is not ours alone", 500, { store: "shared/tc.db", devices: [] }],
    ["a store whose folder is a file", 400, { store: "config.yaml/below.db", devices: [] }],
    ["a store that is another file", 400, { store: "config.yaml" }],
    ["a store that is larger than it may be", 500, { store: "large.db", "max-store-size": 4 * 1024 * 1024 }],
    ["a store outside", 400, { store: "../outside.db" }],
    ["a misspelt limit", 400, { devices: [{ ...device, "download-bsp": 1 }] }],
    ["a number below zero", 400, { devices: [{ ...device, "download-bps": -1 }] }],
    ["a window without a cap", 400, { global: { quota: { window: "1d" } } }],
    ["two policies of one id", 400, { devices: [device, device] }],
    [
      "two policies without an id that are about the same",
      400,
      {
        rules: [
          { type: "DOMAIN", payload: "a.example", target: "DIRECT" },
          { type: "domain", payload: "A.example ", target: "DIRECT" },
        ],
      },
    ],
    ["an interval out of range", 400, { "checkpoint-interval": "1s" }],
  ];
  for (const [what, status, change] of rows)
    for (const persist of ["", "?persist=true"]) {
      const body = { revision, config: { ...config, ...change } };
      const answer = await governed.call("PUT", `traffic-control/policies${persist}`, body);
      assert.equal(answer.status, status, `${what}: ${answer.text}`);
      assert.ok(!answer.text.includes(home), `${what}: ${answer.text}`);
      assert.equal((await getPolicies(governed)).text, before.text, what);
    }
  const [, portal] = await governed.core.shows(/portal: (http:\S+:\d+)/);
  assert.match(await (await fetch(`${portal}/me`)).text(), /phone/);
  assert.equal(readFileSync(join(home, "config.yaml"), "utf8"), governed.configText(BLOCK));
  await governed.transfer(100, 700);
  await new Promise((done) => setTimeout(done, 1500)); // the journal, each second
  await governed.core.stop("SIGKILL");
  await using _again = await startCore(governed.configText(BLOCK), { args: ["-d", home] });
  assert.equal((await statusOf(governed, "phone")).counters.download_bytes, 5700);
});

test("persist=true keeps comments; where the file cannot be written nothing is put in force", async () => {
  await using governed = await startGoverned(BLOCK);
  const { body } = await getPolicies(governed);
  const [device] = body.config["devices"] as readonly Readonly<Record<string, unknown>>[];
  const config = { ...body.config, devices: [{ ...device, "download-bps": 8_000_000 }] };
  const path = "traffic-control/policies?persist=true";
  const good = await governed.call<Envelope>("PUT", path, { revision: body.revision, config });
  assert.equal(good.status, 200, good.text);
  const text = readFileSync(join(governed.core.home, "config.yaml"), "utf8");
  for (const comment of ["# since spring", "# a device of ours", "# its quota"])
    assert.ok(text.includes(comment), `${comment} in ${text}`);
  assert.match(text, /download-bps: 8000000/);
  const broken = `${text}\nrules: [`;
  governed.core.write(broken);
  const refused = await governed.call("PUT", path, { ...good.body, config: { ...config, devices: [] } });
  assert.ok(refused.status >= 400, refused.text);
  assert.deepEqual((await getPolicies(governed)).body, good.body);
  assert.equal(readFileSync(join(governed.core.home, "config.yaml"), "utf8"), broken);
});
