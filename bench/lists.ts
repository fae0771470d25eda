/** Real lists as users download them: the CPU time to load each form, what they hold in memory, what a look costs. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Facts, RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { openCountries } from "#net/address/address-records.ts";
import { sitesInSteps } from "#geodata/categories.ts";
import { DatFile } from "#geodata/dat-file.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { itemsOf, readRuleSet, type Behavior, type Format } from "#providers/rule-set/read.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { atOnce } from "#lib/steps.ts";

export const NAME = "lists";

type Out = (line: string) => void;

const beside = join(dirname(dirname(fileURLToPath(import.meta.url))), "../shared/data");
const FOLDER = process.env["WEIR_DATA"] ?? beside;
const LOOKS = 1 << 19;
const QUESTIONS = 1 << 14;

const LISTS: readonly (readonly [file: string, behavior: Behavior, format: Format])[] = [
  ["geosite/cn.mrs", "domain", "mrs"],
  ["geosite/cn.list", "domain", "text"],
  ["geosite/cn.yaml", "domain", "yaml"],
  ["geosite/category-ads-all.classical.yaml", "classical", "yaml"],
  ["geoip/cn.mrs", "ipcidr", "mrs"],
  ["geoip/cn.yaml", "ipcidr", "yaml"],
];

export async function run(out: Out): Promise<void> {
  if (!existsSync(join(FOLDER, "geosite/cn.mrs")))
    return out(`SKIP lists: ${FOLDER} has none; set WEIR_DATA`);
  const collect = collector();
  const kept: RuleData[] = [];
  for (const [file, behavior, format] of LISTS)
    await load(readFileSync(join(FOLDER, file)), behavior, format); // pays for the compiler
  for (const [file, behavior, format] of LISTS) {
    const bytes = readFileSync(join(FOLDER, file));
    const before = await heldBytes(collect);
    const cpu = process.cpuUsage();
    const data = await load(bytes, behavior, format);
    const { user, system } = process.cpuUsage(cpu);
    kept.push(data); // so that no earlier one goes while the next is weighed
    const held = (await heldBytes(collect)) - before;
    const perLook = lookNs(data, behavior === "ipcidr" ? addresses() : names());
    out(
      `  ${file.padEnd(40)} ${String(data.size).padStart(6)} items  ${((user + system) / 1000).toFixed(0).padStart(4)} ms  ` +
        `${(held / 2 ** 20).toFixed(1).padStart(5)} MiB  ${perLook.toFixed(0).padStart(4)} ns a look`,
    );
  }
  databases(out);
}

function databases(out: Out): void {
  const startedMs = performance.now();
  const sites = DatFile.open(join(FOLDER, "geodat/geosite-lite.dat"));
  const cn = atOnce(sitesInSteps(sites.read("cn"), [], compileLinear));
  const tookMs = performance.now() - startedMs;
  out(
    `  geosite-lite.dat, category cn: ${cn.size} records in ${tookMs.toFixed(0)} ms, ${lookNs(cn, names()).toFixed(0)} ns a look`,
  );
  const codesOf = openCountries(readFileSync(join(FOLDER, "geodat/geoip-lite.metadb")));
  const country: RuleData = {
    reads: ["ip"],
    size: 0,
    match: ({ ip }) => ip !== undefined && ip !== null && codesOf(bytesOfIp(ip)).includes("cn"),
  };
  out(`  geoip-lite.metadb, country of an address: ${lookNs(country, addresses()).toFixed(0)} ns a look`);
}

const NO_SCOPE = {
  ruleSet: () => null,
  geosite: () => null,
  geoip: () => null,
  asn: () => null,
  inboundTypes: new Set<string>(),
};

async function load(bytes: Uint8Array, behavior: Behavior, format: Format): Promise<RuleData> {
  const classical = (lines: readonly string[]) => ({
    data: atOnce(conditionsInSteps(lines, NO_SCOPE, () => {})),
    skipped: { count: 0, first: "" },
  });
  return (await readRuleSet(bytes, { behavior, format }, classical)).data;
}

/** Half of them in the list, half not. */
function names(): readonly Facts[] {
  const entries = itemsOf(readFileSync(join(FOLDER, "geosite/cn.list")), "text");
  return Array.from({ length: QUESTIONS }, (_, at) => {
    const entry = (entries[(at * 7919) % entries.length] as string).replace(/^\+?\./, "");
    return { host: at % 2 === 0 ? `www.${entry}` : `www.${at}.not-there.example` };
  });
}

function addresses(): readonly Facts[] {
  return Array.from({ length: QUESTIONS }, (_, at) => {
    const value = Math.imul(at + 1, 0x9e3779b1) >>> 0;
    return { ip: [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".") as Ip };
  });
}

/** CPU time of one look, in nanoseconds. */
function lookNs(data: RuleData, questions: readonly Facts[]): number {
  for (const facts of questions) data.match(facts);
  const before = process.cpuUsage();
  for (let at = 0; at < LOOKS; at++) data.match(questions[at & (QUESTIONS - 1)] as Facts);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / LOOKS;
}

function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

/** Twice with a pause: the first collection only queues the buffers without a reference. */
async function heldBytes(collect: () => void): Promise<number> {
  for (let round = 0; round < 2; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
