/** A core in memory whose live table is that of the real program, with so many sessions. */
import { connectionsControl } from "#app/control/connections.ts";
import type { Decision } from "#core/router.ts";
import type { Ip } from "#core/session.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { connection } from "../test/support/connection-view.ts";
import { MemoryControl } from "../test/support/memory-control.ts";

/** The table and the views of the real program; the rest is in memory. */
class TableControl extends MemoryControl {
  readonly table = new LiveTable();
  override readonly connections = connectionsControl(this.table, {
    providerOf: () => "",
    serverOf: () => "",
  });
}

export function fullTable(entries: number): TableControl {
  const control = new TableControl();
  for (let at = 0; at < entries; at++) openOne(control.table, at);
  return control;
}

function openOne(table: LiveTable, at: number): void {
  const host = `host${at}.example.com`;
  const { metadata, chain, process } = connection(host);
  const entry = table.open(metadata);
  entry.decision = {
    outbound: null as never, // views ask it for nothing but its provider
    chain,
    groups: [],
    destination: { host, ip: "203.0.113.9" as Ip, port: 443 },
    dnsMode: "normal",
    rule: null,
    unruled: false,
    facts: { ip: null, process } as Decision["facts"],
  };
}
