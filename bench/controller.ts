/** What the Controller costs: a dashboard that watches a full table, and a crowd of slow clients. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { openController, type Controller } from "#api/open-controller.ts";
import { connectionsControl } from "#control/connections.ts";
import { SILENT } from "#core/log.ts";
import type { Decision } from "#core/router.ts";
import type { Ip } from "#core/session.ts";
import { LiveTable } from "#relay/live-table.ts";
import { OPEN_OPTIONS } from "../test/support/api-app.ts";
import { connection } from "../test/support/connection-view.ts";
import { MemoryControl } from "../test/support/memory-control.ts";
import { latencies, quantile, slowClients } from "../test/support/slow-clients.ts";

export const NAME = "controller";

const ENTRIES = 5000;
const FRAMES = 15;
const CROWD = 2000;

/** The table and the views of the real program; the rest is in memory. */
class TableControl extends MemoryControl {
  readonly table = new LiveTable();
  override readonly connections = connectionsControl(this.table, () => "");
}

export async function run(out: (line: string) => void): Promise<void> {
  out(await watching());
  out(await crowded());
}

async function watching(): Promise<string> {
  const control = new TableControl();
  for (let at = 0; at < ENTRIES; at++) openOne(control.table, at);
  await using controller = await openPlain(control);
  const reader = fork(new URL("./controller-reader.ts", import.meta.url), [String(portOf(controller))]);
  try {
    const [sizeBytes] = (await once(reader, "message")) as [number]; // the first one writes everything
    const before = process.cpuUsage();
    const startedMs = performance.now();
    for (let frame = 0; frame < FRAMES; frame++) {
      for (const entry of control.table) entry.count("download", 1500);
      await once(reader, "message");
    }
    const { user, system } = process.cpuUsage(before);
    const share = (user + system) / 1000 / (performance.now() - startedMs);
    const size = `${(sizeBytes / 1e6).toFixed(1)} MB a document`;
    return `/connections, ${ENTRIES} entries every second: ${(share * 100).toFixed(1)} % of a core, ${size}`;
  } finally {
    reader.kill();
  }
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

async function crowded(): Promise<string> {
  await using controller = await openPlain(new MemoryControl());
  const port = portOf(controller);
  using crowd = await slowClients(port, CROWD);
  const took = await latencies(port, 500);
  const [median, p99] = [0.5, 0.99].map((share) => quantile(took, share).toFixed(1));
  return `${crowd.open} clients that trickle headers: others wait ${median} ms (median), ${p99} ms (p99)`;
}

function openPlain(control: MemoryControl): Promise<Controller> {
  const listeners = { http: { host: "127.0.0.1", port: 0 } };
  return openController({ ...OPEN_OPTIONS, listeners }, control, SILENT);
}

function portOf({ endpoints }: Controller): number {
  return endpoints[0]?.port as number;
}
