import assert from "node:assert/strict";
import { test } from "node:test";
import type { Prefix } from "#core/capture.ts";
import { parseCidr } from "#net/cidr.ts";
import { holdText } from "./hold.ts";

test("what is new is dropped last, after marked sockets, what goes on and what is near", () => {
  const local = ["192.0.2.0/24", "2001:db8::/32"].map((text) => parseCidr(text) as Prefix);
  const text = holdText(0x2024, local);
  const [forward = "", output = ""] = ["forward", "output"].map(
    (name) => text.split(`chain ${name} {`)[1]?.split("\n}")[0] ?? "",
  );
  for (const chain of [forward, output]) {
    assert.match(
      chain,
      /ct state != new accept[^]*ip daddr \{ 192\.0\.2\.0-192\.0\.2\.255 \} accept[^]*counter drop$/,
    );
    assert.match(chain, /ip6 daddr \{ 2001:db8::-2001:db8:ffff:[f:]+ \} accept/);
  }
  assert.match(output, /meta mark 8228 accept/);
  assert.doesNotMatch(forward, /mark/);
  assert.match(text, /type nat hook prerouting/, "redirected conversations go on");
});
