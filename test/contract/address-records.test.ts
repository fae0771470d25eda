/** What rules look up in databases of addresses is known of a decision, also where another rule decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleScope } from "#core/rule.ts";
import { categoryData, countryData, systemData } from "#geodata/address-data.ts";
import { parseIp } from "#net/address/ip.ts";
import { atOnce } from "#lib/steps.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { EMPTY_SCOPE, routing, session } from "../support/routing.ts";
import { conditionsInSteps } from "#router/condition-list.ts";

/** By the first byte of the address. */
const CODES = new Map([
  [1, ["au"]],
  [8, ["us", "google"]],
  [192, ["private"]],
]);
const codesOf = (address: Uint8Array) => CODES.get(address[0] ?? 0) ?? [];
const systemOf = (address: Uint8Array) =>
  address[0] === 1 ? { number: 13335, owner: "CLOUDFLARENET" } : null;

const scope: RuleScope = {
  ...EMPTY_SCOPE,
  geoip: (code) => countryData({ find: codesOf, bytes: new Uint8Array() }, code),
  asn: (number) => systemData({ find: systemOf, bytes: new Uint8Array() }, number),
};

test("every rule that was tried counts, whichever decides; what was not asked for is null", async () => {
  const recordsFor = async (rules: readonly string[], host: string) => {
    const decision = await routing({ rules, scope }).route(session(host), AbortSignal.timeout(60_000));
    const { sourceCodes, destinationCodes, sourceSystem, destinationSystem } = decision.records ?? {};
    return [sourceCodes, destinationCodes, sourceSystem, destinationSystem];
  };
  const nothing = [undefined, undefined, undefined, undefined];
  assert.deepEqual(await recordsFor(["GEOIP,cn,A", "MATCH,B"], "8.8.8.8"), [null, ["us", "google"], "", ""]);
  assert.deepEqual(await recordsFor(["GEOIP,us,A", "GEOIP,au,B"], "8.8.8.8"), [
    null,
    ["us", "google"],
    "",
    "",
  ]);
  assert.deepEqual(await recordsFor(["GEOIP,cn,A"], "9.9.9.9"), [null, [], "", ""], "asked, nothing found");
  assert.deepEqual(await recordsFor(["SRC-GEOIP,cn,A", "GEOIP,cn,A,src"], "8.8.8.8"), [
    ["private"],
    null,
    "",
    "",
  ]);
  assert.deepEqual(await recordsFor(["IP-ASN,1,A", "SRC-IP-ASN,13335,A"], "1.1.1.1"), [
    null,
    null,
    "",
    "13335 CLOUDFLARENET",
  ]);
  assert.deepEqual(await recordsFor(["DOMAIN,a.example,A", "GEOIP,cn,B"], "a.example"), nothing);
  assert.deepEqual(await recordsFor(["GEOIP,cn,A,no-resolve", "MATCH,B"], "a.example"), nothing);
  assert.deepEqual(await recordsFor(["GEOIP,lan,A", "MATCH,B"], "8.8.8.8"), nothing);
  const joined = (text: string) => recordsFor([text, "MATCH,B"], "8.8.8.8");
  assert.deepEqual(await joined("AND,((NETWORK,udp),(GEOIP,cn)),A"), nothing, "the first part decides");
  assert.deepEqual(await joined("AND,((NETWORK,tcp),(GEOIP,cn)),A"), [null, ["us", "google"], "", ""]);
  assert.deepEqual(await joined("OR,((NETWORK,tcp),(GEOIP,cn)),A"), nothing);
  assert.deepEqual(await joined("NOT,((GEOIP,us)),A"), [null, ["us", "google"], "", ""]);
});

test("a list of conditions counts down to the one that holds; a category says of itself alone", async () => {
  const list = atOnce(conditionsInSteps(["GEOIP,us", "SRC-GEOIP,cn"], scope, assert.fail));
  const router = routing({ rules: ["RULE-SET,x,A", "MATCH,B"], scope: { ...scope, ruleSet: () => list } });
  const us = await router.route(session("8.8.8.8"), AbortSignal.timeout(60_000));
  assert.deepEqual([us.records?.sourceCodes, us.records?.destinationCodes], [null, ["us", "google"]]);
  const au = await router.route(session("1.1.1.1"), AbortSignal.timeout(60_000));
  assert.deepEqual([au.records?.sourceCodes, au.records?.destinationCodes], [["private"], ["au"]]);

  const table = atOnce(CidrTable.build([parseCidr("8.0.0.0/8") ?? assert.fail()]));
  const networks = {
    reads: ["ip" as const],
    size: 1,
    match: ({ ip }: { ip?: ReturnType<typeof parseIp> }) =>
      ip !== null && ip !== undefined && table.lowest(ip) >= 0,
  };
  const one = categoryData(networks, "us");
  const ofUs = one.records?.({ ip: parseIp("8.8.8.8") }, null) ?? null;
  assert.deepEqual(ofUs?.destinationCodes, ["us"]);
  assert.equal(one.records?.({ ip: parseIp("8.8.8.8") }, ofUs), ofUs, "once");
  assert.equal(one.records?.({ ip: parseIp("9.9.9.9") }, null), null);
  const second = categoryData(networks, "google").records?.({ ip: parseIp("8.8.8.8") }, ofUs);
  assert.deepEqual(second?.destinationCodes, ["us", "google"]);
});
