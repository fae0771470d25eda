import assert from "node:assert/strict";
import { test } from "node:test";
import type { GovernanceDocument } from "#ui/api/governance-types.ts";
import { merge } from "#ui/state/merge.ts";
import { fieldsOf, policyOf } from "#ui/state/policy-fields.ts";
import { fromMap, keyOf, toMap, withPolicy } from "#ui/state/policy-document.ts";

const DOCUMENT: GovernanceDocument = {
  enabled: true,
  store: "x.db",
  portal: {},
  devices: [
    { id: "phone", enabled: true, "source-cidrs": ["192.0.2.1/32"] },
    { enabled: true, mac: "aa:bb:cc:dd:ee:ff", "source-cidrs": ["192.0.2.2/32"] },
  ],
  rules: [{ enabled: true, type: "MATCH", payload: "", target: "DIRECT" }],
  targets: [],
};

test("a document goes there and back, whatever stands in it", () => {
  assert.deepEqual(fromMap(toMap(DOCUMENT)), DOCUMENT);
  assert.equal(keyOf("device", DOCUMENT.devices?.[1] ?? {}), "aa:bb:cc:dd:ee:ff 192.0.2.2/32");
});

test("the address of one device is sent as a network of that address", () => {
  const [phone] = DOCUMENT.devices ?? [];
  assert.ok(phone !== undefined);
  const typed = { ...fieldsOf(phone), sources: "192.0.2.30, 2001:db8::7 10.0.0.0/8" };
  assert.deepEqual(policyOf("device", typed)["source-cidrs"], [
    "192.0.2.30/32",
    "2001:db8::7/128",
    "10.0.0.0/8",
  ]);
});

test("policies are added, changed and removed by their key", () => {
  const [phone] = DOCUMENT.devices ?? [];
  assert.ok(phone !== undefined);
  const slower = { ...phone, "download-bps": 5 };
  assert.equal(withPolicy(DOCUMENT, "device", phone, slower).devices?.[0], slower);
  assert.equal(withPolicy(DOCUMENT, "device", phone, null).devices?.length, 1);
  assert.equal(withPolicy(DOCUMENT, "target", null, { kind: "group", target: "Proxy" }).targets?.length, 1);
  const limited = withPolicy(DOCUMENT, "global", null, { "download-bps": 5 });
  assert.deepEqual(limited.global, { "download-bps": 5 });
  assert.ok(!("global" in withPolicy(limited, "global", limited.global ?? null, null)));
  assert.throws(() => withPolicy(limited, "global", null, { "upload-bps": 5 }), /already/);
});

test("two people add a device each, and change one at different places: all of it stays", () => {
  const [phone] = DOCUMENT.devices ?? [];
  assert.ok(phone !== undefined);
  const edit = (limit: "upload-bps" | "download-bps", id: string) =>
    withPolicy(withPolicy(DOCUMENT, "device", phone, { ...phone, [limit]: 1 }), "device", null, { id });
  const both = merge(
    toMap(DOCUMENT),
    toMap(edit("upload-bps", "mine")),
    toMap(edit("download-bps", "theirs")),
  );
  assert.deepEqual(both.conflicts, []);
  const { devices } = fromMap(both.resolve(new Set()));
  assert.deepEqual(devices?.map(({ id }) => id).filter(Boolean), ["phone", "mine", "theirs"]);
  assert.deepEqual([devices?.[0]?.["upload-bps"], devices?.[0]?.["download-bps"]], [1, 1]);
});
