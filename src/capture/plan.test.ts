/** What a plan becomes: ip rules, routes, the text for nftables. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CaptureOptions, CapturePlan, Prefix } from "#core/capture.ts";
import { ConfigError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { cidrText, parseCidr } from "#net/address/cidr.ts";
import { TABLE } from "./nft/names.ts";
import { capturesOwn, tableText } from "./nft/ruleset.ts";
import { leftOut, policyRules } from "./policy-rules.ts";
import { tableRoutes } from "./table-routes.ts";
import { captureOptions, capturePlan } from "../../test/support/capture-options.ts";

const prefixes = (...texts: readonly string[]): readonly Prefix[] =>
  texts.map((text) => parseCidr(text) as Prefix);
const inet6 = { address: { ip: "fdfe:dcba:9876::1" as Ip, bits: 126 }, next: "fdfe:dcba:9876::2" as Ip };
const plan = (options: Partial<CaptureOptions> = {}, rest: Partial<CapturePlan> = {}): CapturePlan =>
  capturePlan({ inet6, options: captureOptions(options), ipv6: true, hijackDns: true, ...rest });
const EMPTY = { local: [], route: null, routeExclude: null, direct: [], marks: null };
const text = (wanted: CapturePlan) => tableText(TABLE, wanted, EMPTY, { owned: true });
/** The rules of one chain. */
const chainOf = (wanted: CapturePlan, name: string): readonly string[] =>
  (text(wanted).split(`chain ${name} {\n`)[1] ?? "").split("\n}")[0]?.split("\n").slice(1) ?? [];

test("mark mode: four rules a family that the TUN has", () => {
  const rules = policyRules(plan({}, { inet6: null }));
  assert.deepEqual(
    rules.map(({ family, priority, mark, goto, table, end }) => [
      family,
      priority,
      mark ?? goto ?? end ?? table,
    ]),
    [
      [4, 9000, 0x2024],
      [4, 9001, 0x2023],
      [4, 9002, "nop"],
      [4, 32_768, 2022],
    ],
  );
  assert.equal(policyRules(plan()).length, 8);
  assert.deepEqual(policyRules(plan({ autoRoute: false })), []);
});

test("without auto-redirect every rule stands within the eleven priorities, jumps lead forward to a rule", () => {
  const options = {
    autoRedirect: false,
    strictRoute: true,
    includeInterface: ["lan0", "lan1"],
    includeUid: [{ from: 1000, to: 1999 }],
    routeAddress: prefixes("10.0.0.0/8"),
  };
  for (const wanted of [plan(options), plan(options, { inet6: null })]) {
    const rules = policyRules(wanted);
    for (const rule of rules) {
      assert.ok(rule.priority >= 9000 && rule.priority <= 9010);
      if (rule.goto === undefined) continue;
      const target = rules.find(({ family, priority }) => family === rule.family && priority === rule.goto);
      assert.ok(target !== undefined && target.priority > rule.priority);
    }
  }
  const closed = policyRules(plan(options, { inet6: null })).filter(({ family }) => family === 6);
  assert.equal(closed.at(-2)?.end, "unreachable");
});

test("without auto-redirect fake addresses are captured wherever they come from, and leave by no device", () => {
  const fakeRanges = prefixes("198.18.0.0/16", "fc00::/64");
  const steps = (wanted: CapturePlan, family: 4 | 6, to: string) =>
    policyRules(wanted)
      .filter((rule) => rule.family === family && rule.to !== undefined && cidrText(rule.to) === to)
      .map(({ priority, table, from, end }) => [priority, end ?? table, from?.bits ?? 0]);
  const wanted = plan({ autoRedirect: false, excludeInterface: ["guest0"] }, { fakeRanges });
  // The way back of answers is asked for with the client as source: that must not be refused.
  assert.deepEqual(steps(wanted, 4, "198.18.0.0/16"), [
    [9005, 2022, 0],
    [9008, "unreachable", 32],
    [9009, "unreachable", 0],
  ]);
  assert.deepEqual(steps(wanted, 6, "fc00::/64"), [
    [9005, 2022, 0],
    [9009, "unreachable", 0],
  ]);
  const out = policyRules(wanted).filter(({ inDevice }) => inDevice === "guest0");
  assert.deepEqual(
    out.map(({ goto }) => goto),
    [9008, 9008],
    "nor does what is left out",
  );
  const alone = plan({ autoRedirect: false }, { fakeRanges, inet6: null });
  assert.deepEqual(steps(alone, 6, "fc00::/64"), [[9009, "unreachable", 0]], "a family that the TUN has not");
});

test("routes: the default, what was asked for, or the world without what was left out", () => {
  const routes = (options: Partial<CaptureOptions>, family: 4 | 6 = 4) =>
    tableRoutes(plan(options), family).map((prefix) => cidrText(prefix));
  assert.deepEqual(routes({}), ["0.0.0.0/0"]);
  assert.deepEqual(routes({}, 6), ["::/0"]);
  assert.deepEqual(routes({ routeAddress: prefixes("10.1.0.0/16") }), ["10.1.0.0/16"]);
  assert.deepEqual(routes({ routeAddress: prefixes("10.1.0.0/16") }, 6), ["::/0"]);
  const without = { routeExcludeAddress: prefixes("0.0.0.0/1") };
  assert.deepEqual(routes(without), ["0.0.0.0/0"], "nftables leaves it out");
  assert.deepEqual(routes({ ...without, autoRedirect: false }), ["128.0.0.0/1"]);
  assert.deepEqual(tableRoutes(plan({}, { inet6: null }), 6), []);
});

test("users: those left out, and everybody but those let in", () => {
  assert.deepEqual(leftOut([], [{ from: 5, to: 6 }]), [{ from: 5, to: 6 }]);
  assert.deepEqual(
    leftOut(
      [
        { from: 1000, to: 1999 },
        { from: 0, to: 0 },
      ],
      [],
    ),
    [
      { from: 1, to: 999 },
      { from: 2000, to: 0xffff_fffe },
    ],
  );
});

test("the exclusions stand in the order of transparent-proxy §9.2", () => {
  const wanted = plan(
    {
      excludeInterface: ["guest0"],
      excludeMac: ["02-00-5E-00-53-01"],
      routeAddress: prefixes("10.0.0.0/8"),
      excludeSourcePort: [{ from: 1, to: 9 }],
      kernelDirect: true,
    },
    { routeSet: [], routeExcludeSet: [] },
  );
  const rules = chainOf(wanted, "prerouting");
  const order = [
    "jump kernel_direct_mark",
    'iifname "tun0" return',
    'iifname { "guest0" } return',
    "meta iiftype ether ether saddr { 02:00:5e:00:53:01 } return",
    "ip daddr != { 10.0.0.0-10.255.255.255 } return",
    "meta l4proto { tcp, udp } th sport { 1-9 } return",
    "ip saddr @inet4_local_address_set meta l4proto { tcp, udp } th dport 53 counter",
    "ip daddr @inet4_local_address_set return",
    "ip daddr != @inet4_route_address_set return",
    "ip daddr @inet4_route_exclude_address_set return",
    "ip daddr @inet4_kernel_direct_set meta l4proto { tcp, udp } th dport != 53 counter ct mark set 8228 return",
    "tcp option mptcp exists counter drop",
    "jump kernel_direct_proxy",
    "meta l4proto tcp counter redirect to :7000",
    "meta l4proto { udp, icmp, ipv6-icmp } counter meta mark set 8227 ct mark set 8227",
  ].map((start) => rules.findIndex((rule) => rule.startsWith(start)));
  assert.ok(!order.includes(-1), `missing: ${order.join()}`);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
});

test("kernel-direct's sets and chains are there when it is on, and only then", () => {
  assert.match(text(plan({ kernelDirect: true })), /set inet4_kernel_direct_set \{ type ipv4_addr; \}/);
  assert.doesNotMatch(text(plan()), /kernel_direct/);
});

test("the programs of this machine are left out with the interface lo", () => {
  assert.equal(capturesOwn(plan()), true);
  assert.equal(capturesOwn(plan({ includeInterface: ["lan0"] })), false);
  assert.equal(capturesOwn(plan({ includeInterface: ["lan0", "lo"] })), true);
  assert.equal(capturesOwn(plan({ excludeInterface: ["lo"] })), false);
  assert.doesNotMatch(text(plan({ excludeInterface: ["lo"] })), /hook output/);
});

test("strict-route refuses the family that the TUN lacks; without it that family is not touched", () => {
  const refusal = "meta nfproto ipv6 counter reject with icmpx no-route";
  const without6 = { inet6: null };
  assert.ok(chainOf(plan({ strictRoute: true }, without6), "prerouting").includes(refusal));
  assert.doesNotMatch(text(plan({ strictRoute: true })), /reject/);
  assert.ok(
    chainOf(plan({}, without6), "output").includes(
      "meta nfproto ipv4 meta l4proto tcp counter redirect to :7000",
    ),
  );
});

test("strict-route drops what the TUN shall have of sockets that are bound to another device", () => {
  const [drop] = chainOf(plan({ strictRoute: true }), "bound_to_devices");
  assert.match(drop ?? "", /^meta mark 8227 oifname != \{ "lo", "[^"]+" \} counter drop$/);
  assert.deepEqual(chainOf(plan(), "bound_to_devices"), []);
  assert.deepEqual(chainOf(plan({ strictRoute: true, excludeInterface: ["lo"] }), "bound_to_devices"), []);
});

test("a set that is configured and empty matches nothing, so nothing is captured", () => {
  const wanted = plan({}, { routeSet: [] });
  assert.match(
    tableText(TABLE, wanted, { ...EMPTY, route: [] }, { owned: true }),
    /set inet4_route_address_set \{ type ipv4_addr; flags interval; \}/,
  );
});

test("what could break out of the text is refused", () => {
  for (const name of ['a"; flush ruleset; "', "a b", "", "sixteen-letters-", "a\n"])
    assert.throws(() => text(plan({ includeInterface: [name] })), ConfigError, name);
  for (const mac of ["02:00:5e:00:53", "02:00:5e:00:53:01 }", ""])
    assert.throws(() => text(plan({ includeMac: [mac] })), /include-mac-address/);
});
