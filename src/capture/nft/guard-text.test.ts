import assert from "node:assert/strict";
import { test } from "node:test";
import type { Prefix } from "#core/capture.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { captureOptions, capturePlan } from "../../../test/support/capture-options.ts";
import { guardText } from "./guard-text.ts";

const prefixes = (...texts: readonly string[]) => texts.map((text) => parseCidr(text) as Prefix);
const CONTENTS = { local: prefixes("192.0.2.0/24"), route: null, routeExclude: null, marks: null };

function chainOf(text: string, name: string): string {
  const found = text.split(`chain ${name} {`)[1]?.split("\n}")[0];
  assert.ok(found !== undefined, `no chain ${name} in ${text}`);
  return found;
}

test("what is captured is dropped last, behind what is answered, excluded, near or older than the capture", () => {
  const options = captureOptions({
    routeExcludeAddress: prefixes("203.0.113.0/24"),
    kernelDirect: true,
    onExit: "closed",
  });
  const text = guardText(capturePlan({ options, hijackDns: true }), CONTENTS, "for good");
  assert.doesNotMatch(text, /timeout \d|flags owner/, "it stays, whatever becomes of the program");
  for (const [name, first] of [
    ["forwarded", /ct direction reply ct mark != 8227 accept/],
    ["sent", /ct direction reply accept/],
  ] as const) {
    const rules = chainOf(text, name);
    const order = [
      first,
      /ip daddr \{ 203\.0\.113\.0-203\.0\.113\.255 \} return/,
      /th dport 53 ct mark != 8227 counter drop/,
      /ip daddr @inet4_local_address_set return/,
      /meta l4proto tcp ct state established,related accept/,
      /meta nfproto ipv4 counter drop$/,
    ].map((rule) => rules.search(rule));
    assert.ok(!order.includes(-1), `${name}: ${order.join()} in ${rules}`);
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
    assert.doesNotMatch(rules, /kernel_direct_set/, "what was learnt has the mark");
  }
  assert.match(chainOf(text, "sent"), /udp sport 68 udp dport 67 accept/);
  assert.match(chainOf(text, "output"), /meta mark \{ 8227, 8228 \} accept/);
  assert.match(text, /type nat hook prerouting/, "redirected connections go on");
});

test("for a change it ends by itself; with neither, only addresses of ours stay here", () => {
  const plan = capturePlan({ fakeRanges: prefixes("198.18.0.0/16") });
  assert.match(guardText(plan, CONTENTS, { seconds: 60 }), /elements = \{ tcp timeout 60s, udp timeout 60s/);
  const rest = guardText(plan, CONTENTS, null);
  assert.equal(rest.match(/chain /g)?.length, 1);
  assert.match(
    chainOf(rest, "postrouting"),
    /oifname "tun0" accept\nip daddr \{ 198\.18\.0\.0-198\.18\.255\.255 \} counter drop$/,
  );
});

test("programs of this machine that are not captured are not kept in either", () => {
  const options = captureOptions({ excludeInterface: ["lo"] });
  const text = guardText(capturePlan({ options }), CONTENTS, "for good");
  assert.doesNotMatch(text, /hook output/);
  assert.match(text, /hook forward/);
});
