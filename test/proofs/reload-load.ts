/**
 * Reloads under load: transfers that go on, connections that come and go, an API that is polled. Memory and descriptors of
 * the program are read from outside. As a program: `node reload-load.ts KIND RELOADS` prints `ReloadFindings` as JSON; a TUN
 * wants a network namespace of its own.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { ask, HonestClients, openDescriptors, repeat, residentMiB } from "../support/program-load.ts";
import { startCore } from "../support/start-core.ts";
import { openSteadyTransfer, SteadyOrigin } from "../support/steady-transfers.ts";
import { until } from "../support/until.ts";

export const RELOAD_LOAD = fileURLToPath(import.meta.url);
export const RELOAD_KINDS = ["plain", "tun", "providers", "rules"] as const;
export type ReloadKind = (typeof RELOAD_KINDS)[number];

export interface ReloadFindings {
  readonly reloads: number;
  readonly exchanges: number;
  /** Means of the second tenth of the reloads, and of the last one. */
  readonly earlyMiB: number;
  readonly lateMiB: number;
  /** At the end of each tenth of them. */
  readonly residentMiB: readonly number[];
  /** With the transfers and nothing else: before the reloads, and behind them. */
  readonly descriptors: readonly [before: number, after: number];
  /** A line each. */
  readonly faults: readonly string[];
}

const TRANSFERS = 20;
const RULES = 20_000;
/** Sockets of the API's clients come and go. */
const MORE_DESCRIPTORS = 8;
const PATHS = ["/connections", "/proxies", "/rules", "/configs", "/providers/rules"];

interface Ports {
  readonly mixed: number;
  readonly controller: number;
  readonly side: number;
}

const PROVIDERS = `
proxy-providers:
  nodes: { type: file, path: nodes.yaml, health-check: { enable: true, interval: 300, url: 'http://127.0.0.1:1/' } }
rule-providers:
  domains: { type: file, behavior: domain, format: text, path: domains.txt }
  lines: { type: inline, behavior: classical, payload: ["DOMAIN-SUFFIX,example.org"] }
`;
const TUN = `
dns: { enable: true, enhanced-mode: fake-ip, nameserver: [127.0.0.1:1] }
tun: { enable: true, device: weirload, auto-route: false, auto-detect-interface: false, dns-hijack: ["any:53"] }
`;

function rulesOf(kind: ReloadKind, round: number): string {
  const many = Array.from({ length: RULES }, (_, at) => `  - DOMAIN-SUFFIX,n${at}.r${round % 7}.example,G\n`);
  const lists = "  - RULE-SET,domains,G\n  - RULE-SET,lines,G\n";
  return kind === "rules" ? many.join("") : kind === "providers" ? lists : "";
}

/** Every round has another listener, another node and other rules. */
function configText(kind: ReloadKind, round: number, { mixed, controller, side }: Ports): string {
  return `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
log-level: ${round === 0 ? "info" : "error"}
${kind === "tun" ? TUN : ""}${kind === "providers" ? PROVIDERS : ""}
proxies:
  - { name: node ${round % 5}, type: socks5, server: 127.0.0.1, port: ${1000 + (round % 5)} }
proxy-groups:
  - { name: G, type: select, proxies: [node ${round % 5}, DIRECT]${kind === "providers" ? ", use: [nodes]" : ""} }
listeners:
  - { name: side, type: ${round % 2 === 0 ? "socks" : "http"}, listen: 127.0.0.1, port: ${side} }
rules:
${rulesOf(kind, round)}  - IP-CIDR,127.0.0.0/8,DIRECT
  - MATCH,REJECT
`;
}

function seed(home: string): void {
  writeFileSync(
    join(home, "nodes.yaml"),
    "proxies: [{ name: n, type: socks5, server: 127.0.0.1, port: 2 }]\n",
  );
  writeFileSync(join(home, "domains.txt"), "+.example.com\n");
}

export async function proveReloads(kind: ReloadKind, reloads: number): Promise<ReloadFindings> {
  const [mixed, controller, side] = (await freePorts(3)) as [number, number, number];
  const ports = { mixed, controller, side };
  await using origin = await SteadyOrigin.open();
  await using repeating = await openTcpOrigin(echo);
  await using core = await startCore(configText(kind, 0, ports), { seed });
  const transfers = [];
  for (let at = 0; at < TRANSFERS; at++) transfers.push(await openSteadyTransfer(mixed, origin.port));
  const faults: string[] = [];
  const before = openDescriptors(core.pid);
  const honest = new HonestClients(
    [1, 2].map(() => ({ port: mixed, tls: false })),
    repeating.port,
    20,
  );
  const resident: number[] = [];
  {
    await using polling = repeat("polling", 100, async (round) => {
      await ask(controller, "GET", PATHS[round % PATHS.length] as string);
    });
    for (let round = 1; round <= reloads; round++) {
      core.write(configText(kind, round, ports));
      await ask(controller, "PUT", "/configs?force=true", { path: "" });
      resident.push(residentMiB(core.pid));
    }
    await honest.stop();
    faults.push(...polling.faults);
  }
  faults.push(...honest.faults);
  for (const { failure } of transfers) if (failure !== null) faults.push(`a transfer: ${failure.message}`);
  const most = before + MORE_DESCRIPTORS;
  await until("descriptors come back", () => openDescriptors(core.pid) <= most).catch((error: unknown) =>
    faults.push(String(error)),
  );
  const after = openDescriptors(core.pid);
  origin.finish();
  const ends = await Promise.all(transfers.map((transfer) => transfer.finish()));
  if (ends.some(({ intact }) => !intact)) faults.push("a transfer has other bytes than were sent");
  const tenth = Math.max(1, Math.floor(reloads / 10));
  return {
    reloads,
    exchanges: honest.exchanges,
    earlyMiB: mean(resident.slice(tenth, tenth * 2)),
    lateMiB: mean(resident.slice(-tenth)),
    residentMiB: resident.filter((_, at) => (at + 1) % tenth === 0).map(Math.round),
    descriptors: [before, after],
    faults,
  };
}

const mean = (values: readonly number[]): number =>
  Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);

export function shownReloads(found: ReloadFindings): string {
  const { reloads, exchanges, earlyMiB, lateMiB, descriptors, faults } = found;
  const memory = `${earlyMiB} MiB in their second tenth, ${lateMiB} MiB in their last (${found.residentMiB.join(" ")})`;
  return `${reloads} reloads beside ${exchanges} connections: ${memory}, descriptors ${descriptors.join(" and ")}, ${faults.length} faults`;
}

if (process.argv[1] === RELOAD_LOAD) {
  const [kind = "plain", reloads = "20"] = process.argv.slice(2);
  if (kind === "tun") spawnSync("ip", ["link", "set", "lo", "up"]); // of the namespace that it was started in
  writeFileSync(1, `${JSON.stringify(await proveReloads(kind as ReloadKind, Number(reloads)))}\n`);
  process.exit(0);
}
