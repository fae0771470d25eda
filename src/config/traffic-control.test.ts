import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import { cidrText } from "#net/address/cidr.ts";
import { parseTrafficControl } from "./traffic-control.ts";
import { good, pathErrorsOf } from "../../test/support/config-texts.ts";

test("traffic-control.md 1: limits and quotas", () => {
  const { trafficControl } = good(`
traffic-control:
  enabled: true
  checkpoint-interval: 10M
  portal: {listen: "192.168.1.1:8081", url: "http://gw.example/"}
  reports: {hourly-retention: 1w}
  global: {download-bps: 100000000, quota: {total-bytes: 107374182400, window: 30d, portal: false}}
  devices: [{id: phone, mac: "AA:BB:CC:DD:EE:FF", source-cidrs: [192.168.1.20/24]}]
  rules: [{type: DOMAIN-SUFFIX, payload: example.video, target: Proxy}]
  targets: [{kind: Group, target: Proxy, upload-bps: 5}]
`);
  assert.equal(trafficControl?.checkpointIntervalMs, 600_000);
  assert.deepEqual(
    [trafficControl?.reports.hourlyRetentionMs, trafficControl?.portal.url],
    [604_800_000, "http://gw.example"],
  );
  assert.deepEqual(
    [trafficControl?.global?.quota?.windowMs, trafficControl?.global?.portal],
    [30 * 86_400_000, false],
  );
  const device = trafficControl?.devices[0];
  assert.deepEqual(
    [device?.mac, device?.sourceCidrs.map(cidrText), device?.portal],
    ["aa:bb:cc:dd:ee:ff", ["192.168.1.0/24"], true],
  );
  assert.deepEqual(
    [trafficControl?.targets[0]?.kind, trafficControl?.maxStoreSizeBytes],
    ["group", 67_108_864],
  );
});

test("device-identity: neighbour does without source-cidrs where there is a mac, and nowhere else", () => {
  const block = (devices: string, identity = "neighbour") =>
    `traffic-control: {enabled: true, device-identity: ${identity}, devices: [${devices}]}\n`;
  const phone = '{mac: "AA:BB:CC:DD:EE:FF"}';
  const { trafficControl } = good(block(phone));
  assert.deepEqual(
    [trafficControl?.deviceIdentity, trafficControl?.devices[0]?.mac, trafficControl?.leases],
    ["neighbour", "aa:bb:cc:dd:ee:ff", []],
  );
  assert.match(pathErrorsOf(block("{id: a}")).join("\n"), /source-cidrs.*is required where there is no mac/);
  assert.match(pathErrorsOf(block(phone, "address")).join("\n"), /device-identity: neighbour finds it/);
});

test("traffic-control.md 1: what rejects the block", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["devices: [{mac: 'aa:bb:cc:dd:ee:ff'}]", /source-cidrs/],
    ["devices: [{source-cidrs: [1.2.3]}]", /expected a CIDR with its prefix length such as 192.168.1.20\/32/],
    ["devices: [{source-cidrs: [192.0.2.7]}]", /such as 192.0.2.7\/32, got/],
    ["devices: [{source-cidrs: ['fd00::7']}]", /such as fd00::7\/128, got/],
    ["global: {id: '-x'}", /expected 1 to 128 letters/],
    ["global: {downlod-bps: 1}", /unknown key "downlod-bps"; did you mean "download-bps"/],
    ["global: {quota: {total-bytes: 1}}", /window.*is required where a byte cap/],
    ["global: {quota: {window: 1d}}", /needs a byte cap/],
    ["global: {quota: {total-bytes: 1, window: 30m}}", /from 1h to 365d/],
    [
      "global: {portal: true, quota: {total-bytes: 1, window: 1d, portal: false}}",
      /differs from quota\.portal/,
    ],
    ["global: {download-bps: -1}", /expected an integer from 0/],
    ["checkpoint-interval: 10s", /expected a duration/],
    ["checkpoint-interval: 2h", /from 1m to 1h/],
    ["max-store-size: 5", /4194304 \(4 MiB\)/],
    ["reports: {daily-retention: 4000d}", /from 1d to 3650d/],
    ["portal: {listen: ':80'}", /portal\.url.*is required/],
    ["store: /etc/x", /not safe/],
    ["targets: [{kind: node, target: x}]", /expected one of proxy, group/],
    ["rules: [{type: MATCH}]", /target.*is required/],
    ["global: {id: a}, targets: [{id: a, kind: proxy, target: x}]", /used twice/],
    [`devices: [${Array(257).fill("{source-cidrs: [1.0.0.0/8]}").join(", ")}]`, /at most 256 policies/],
  ];
  for (const [fields, message] of cases)
    assert.match(pathErrorsOf(`traffic-control: {enabled: true, ${fields}}\n`).join("\n"), message);
});

test("traffic-control that is off is not checked; JSON is read like the file", () => {
  assert.equal(
    good("traffic-control: {store: /etc/x, checkpoint-interval: no}\n").trafficControl?.enabled,
    false,
  );
  assert.equal(good("traffic-control: {global: {download-bps: 7}}\n").trafficControl?.global?.downloadBps, 7);
  const { files } = testEnv();
  const read = parseTrafficControl(
    { enabled: true, targets: [{ kind: "proxy", target: "a", "download-bps": 5 }] },
    files,
  );
  assert.ok("config" in read && read.config.targets[0]?.downloadBps === 5);
  const bad = parseTrafficControl({ enabled: true, global: { "upload-bps": "x" } }, files);
  assert.ok("errors" in bad && bad.errors[0]?.path === "traffic-control.global.upload-bps");
  assert.ok("errors" in parseTrafficControl(null, files));
  const bare = parseTrafficControl({ enabled: true, devices: [{ id: "a" }] }, files);
  assert.ok("errors" in bare);
  assert.match(bare.errors[0]?.message ?? "", /^is required: a device/); // there is no file whose line could be named
});
