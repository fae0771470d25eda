import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { withBlock } from "./block-edit.ts";

const FILE = `# my network
mixed-port: 7890 # everybody
proxies: [{name: a, type: socks5, server: 192.0.2.1, port: 1080}]

traffic-control:
  enabled: true # since spring
  devices:
    # the children's
    - id: tv
      source-cidrs: [192.0.2.7/32]
      quota: { total-bytes: 0x10, window: 30d }
    - id: old
      source-cidrs: [192.0.2.8/32]
rules:
  - MATCH,DIRECT # the rest
`;

test("comments and everything outside the block stay", () => {
  const value = {
    enabled: true,
    devices: [
      { id: "new", "source-cidrs": ["192.0.2.9/32"] },
      { id: "tv", "source-cidrs": ["192.0.2.7/32"], quota: { "total-bytes": 17, window: "30d" } },
    ],
  };
  const text = withBlock(FILE, "traffic-control", value);
  for (const kept of [
    "# my network",
    "7890 # everybody",
    "# since spring",
    "# the children's",
    "# the rest",
    "[{name: a, type",
  ])
    assert.ok(text.includes(kept), kept);
  assert.ok(!text.includes("id: old"));
  assert.match(text, /total-bytes: 17/);
  assert.ok(text.indexOf("id: new") < text.indexOf("id: tv"));
});

test("the same value again changes nothing more", () => {
  const value = { enabled: false, global: { id: "g", "download-bps": 5 } };
  const once = withBlock(FILE, "traffic-control", value);
  assert.equal(withBlock(once, "traffic-control", value), once);
});

test("a file without the block gets one; a file that is no map is refused", () => {
  assert.match(
    withBlock("mixed-port: 1\n", "traffic-control", { enabled: true }),
    /traffic-control:\n {2}enabled: true/,
  );
  for (const text of ["- a\n", "a: [", ""])
    assert.throws(() => withBlock(text, "traffic-control", {}), ConfigError);
});

test("a file beyond the bounds of a configuration is refused with the bound", () => {
  for (const text of [`a: ${"[".repeat(100_000)}`, `a: ${"{b: ".repeat(1_000)}`])
    assert.throws(
      () => withBlock(text, "traffic-control", {}),
      /cannot be edited: nested more than 64 levels deep/,
    );
});
