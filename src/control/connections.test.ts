import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/router.ts";
import { LiveTable } from "#relay/live-table.ts";
import { connection } from "../../test/support/connection-view.ts";
import { connectionsControl } from "./connections.ts";

const decision = (host: string): Decision => ({
  outbound: null as never, // nobody asks it for anything
  chain: ["Proxy", "Node 1"],
  groups: [],
  destination: { host, ip: null, port: 443 },
  dnsMode: "normal",
  rule: null,
  unruled: false,
  facts: { ip: null } as Decision["facts"],
});

test("the metadata of a view is the same object as long as the decision is", () => {
  const table = new LiveTable();
  const control = connectionsControl(table, () => "");
  const shown = () => [...control.entries()].map(({ metadata }) => metadata);
  const entry = table.open(connection("a.example").metadata);
  assert.equal(shown()[0], entry.metadata);
  entry.decision = decision("b.example");
  const [first] = shown();
  assert.equal(first?.destination.host, "b.example");
  assert.equal(shown()[0], first);
  entry.decision = decision("c.example");
  assert.equal(shown()[0]?.destination.host, "c.example");
});

test("sessions that share a decision keep their own metadata", () => {
  const table = new LiveTable();
  const control = connectionsControl(table, () => "");
  const shared = decision("b.example");
  const entries = [1, 2].map(() => table.open(connection("a.example").metadata));
  for (const entry of entries) entry.decision = shared;
  const ids = entries.map(({ metadata }) => metadata.id);
  for (const _ of [1, 2])
    assert.deepEqual(
      [...control.entries()].map(({ metadata }) => metadata.id),
      ids,
    );
});
