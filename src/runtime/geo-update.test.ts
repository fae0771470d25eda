import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { Slices } from "#core/slices.ts";
import { Geodata } from "#geodata/geodata.ts";
import { GeoUpdater } from "./geo-update.ts";

const START_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
/** GeoSite.dat with the category `a`, which holds a.b. */
const SITES = Buffer.from("0a0c0a0141120708021203612e62", "hex");
const URL_OF = (name: string) => `http://e.example/${name}`;

/** When a database of `ageHours` is downloaded, in hours behind the start; the clock is set by `setHours` behind the first minute. */
async function downloads(
  t: TestContext,
  { ageHours, setHours, hours }: { ageHours: number; setHours: number; hours: number },
): Promise<readonly number[]> {
  const home = mkdtempSync(join(tmpdir(), "weir-geo-update-"));
  writeFileSync(join(home, "GeoSite.dat"), SITES);
  const changedAt = (START_MS - ageHours * HOUR_MS) / 1000;
  utimesSync(join(home, "GeoSite.dat"), changedAt, changedAt);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = START_MS;
  let passedMs = 0;
  t.mock.method(Date, "now", () => nowMs);
  const urls = { geosite: URL_OF("site"), geoip: URL_OF("ip"), mmdb: URL_OF("mmdb"), asn: URL_OF("asn") };
  const geodata = new Geodata(
    {
      home,
      geodataMode: false,
      urls,
      compile: (source) => new RegExp(source),
      slices: new Slices(),
      log: SILENT,
    },
    null,
  );
  geodata.geosite("a");
  const found: number[] = [];
  const updater = new GeoUpdater({
    geodata,
    options: { geoAutoUpdate: true, geoUpdateInterval: 24, geoxUrl: urls },
    fetch: async () => {
      found.push(passedMs / HOUR_MS);
      throw new Error("no way");
    },
    log: SILENT,
    changeRouting: async (apply) => apply(),
  });
  updater.activate();
  const stepMs = HOUR_MS / 4;
  while (passedMs < hours * HOUR_MS && found.length === 0) {
    nowMs += stepMs;
    passedMs += stepMs;
    if (passedMs === stepMs) nowMs += setHours * HOUR_MS;
    t.mock.timers.tick(stepMs);
    for (let round = 0; round < 10; round++) await turn();
  }
  await updater[Symbol.asyncDispose]();
  t.mock.timers.reset();
  t.mock.reset();
  rmSync(home, { recursive: true });
  return found;
}

test("a database is fetched by its age, by a clock that is wrong at the start, too", async (t) => {
  assert.deepEqual(await downloads(t, { ageHours: 20, setHours: 0, hours: 6 }), [4]);
  const year = 365 * 24;
  assert.deepEqual(
    await downloads(t, { ageHours: -year, setHours: 0, hours: 48 }),
    [24],
    "its date is to come: no longer than the interval",
  );
  assert.deepEqual(
    await downloads(t, { ageHours: -year, setHours: year + 48, hours: 6 }),
    [1],
    "the clock is set behind the start: within an hour",
  );
});
