import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/router.ts";
import type { Rule } from "#core/rule.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { connection } from "../../../test/support/connection-view.ts";
import { connectionsControl } from "./connections.ts";

const decision = (host: string): Decision => ({
  outbound: { name: "Node 1" } as never, // no other member is read
  chain: ["Proxy", "Node 1"],
  groups: [],
  destination: { host, ip: null, port: 443 },
  dnsMode: "normal",
  rule: null,
  unruled: false,
  facts: { ip: null } as Decision["facts"],
});

test("a view is settled by the decision, which names the destination from then on", () => {
  const table = new LiveTable();
  const control = connectionsControl(table, {
    providerOf: ({ name }) => `provider of ${name}`,
    serverOf: () => "",
  });
  const shown = () => [...control.entries()][0];
  const entry = table.open(connection("a.example").metadata);
  assert.equal(shown()?.settled, null);
  assert.equal(shown()?.destination.host, "a.example");
  assert.deepEqual([shown()?.chain, shown()?.providerChain], [[], []]);
  entry.decision = decision("b.example");
  assert.equal(shown()?.settled, shown()?.settled);
  assert.equal(shown()?.destination.host, "b.example");
  assert.deepEqual(shown()?.providerChain, ["", "provider of Node 1"]);
  const before = shown()?.settled;
  entry.decision = decision("c.example");
  assert.notEqual(shown()?.settled, before);
  assert.equal(shown()?.destination.host, "c.example");
  assert.equal(shown()?.metadata, entry.metadata);
});

test("sessions that share a decision keep their own metadata", () => {
  const table = new LiveTable();
  const control = connectionsControl(table, { providerOf: () => "", serverOf: () => "" });
  const shared = decision("b.example");
  const entries = [1, 2].map(() => table.open(connection("a.example").metadata));
  for (const entry of entries) entry.decision = shared;
  assert.equal(control.size, 2);
  assert.deepEqual(
    [...control.entries()].map(({ metadata }) => metadata),
    entries.map(({ metadata }) => metadata),
  );
});

test("the SUB-RULE that led to a line is shown, with what the rules looked up; UDP shows the node's server", () => {
  const table = new LiveTable();
  const control = connectionsControl(table, { providerOf: () => "", serverOf: () => "node.example" });
  const rule = (apiType: string, payload: string): Rule => ({
    index: -1,
    type: "GEOIP",
    apiType,
    payload,
    target: "Proxy",
    matcher: { reads: [], match: () => true },
  });
  const shown = (records: Decision["records"], network: "tcp" | "udp") => {
    const { metadata } = connection("a.example");
    using entry = table.open({ ...metadata, network });
    entry.decision = {
      ...decision("b.example"),
      rule: rule("GeoIP", "cn"),
      entered: rule("SubRules", "(NETWORK,TCP)"),
      ...(records === undefined ? {} : { records }),
    };
    const [view] = [...control.entries()];
    assert.ok(view);
    assert.deepEqual([view.rule?.apiType, view.rule?.payload], ["SubRules", "(NETWORK,TCP)"]);
    const { remoteHost, sourceGeoIp, destinationGeoIp, sourceAsn, destinationAsn } = view;
    return [remoteHost, sourceGeoIp, destinationGeoIp, sourceAsn, destinationAsn];
  };
  assert.deepEqual(shown(undefined, "tcp"), ["", null, null, "", ""]);
  const records = {
    sourceCodes: null,
    destinationCodes: ["cn"],
    sourceSystem: "",
    destinationSystem: "13335 CLOUDFLARENET",
  };
  assert.deepEqual(shown(records, "udp"), ["node.example", null, ["cn"], "", "13335 CLOUDFLARENET"]);
});
