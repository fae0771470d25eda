/**
 * Everything at once: reloads, changes of a TUN, refreshed providers, an API that is polled and thousands of hostile clients a
 * minute, beside honest ones. What these saw in quiet is measured first, in the same run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import {
  ask,
  HonestClients,
  openDescriptors,
  repeat,
  residentMiB,
  type Door,
  type Repeated,
} from "../support/program-load.ts";
import { type Core, startCore } from "../support/start-core.ts";
import { serverTls } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

export interface MixedPlan {
  readonly quietMs: number;
  readonly loadMs: number;
  readonly hostileAMinute: number;
  readonly reloadEveryMs: number;
  /** Needs a network namespace of its own. */
  readonly tun: boolean;
}

export interface MixedFindings {
  readonly exchanges: number;
  readonly hostile: number;
  readonly reloads: number;
  readonly tunChanges: number;
  readonly quietP99Ms: number;
  readonly loadP99Ms: number;
  /** In quiet, at most in the second and in the last quarter of the load, and behind it. */
  readonly descriptors: readonly number[];
  /** Means at the same times. */
  readonly residentMiB: readonly number[];
  readonly faults: readonly string[];
}

const HOSTILE = fileURLToPath(new URL("../support/hostile-clients.ts", import.meta.url));
const LANE_PAUSE_MS = 50;
const SAMPLE_MS = 250;
const TUN_EVERY_MS = 7_000;
const REFRESH_EVERY_MS = 3_000;
const POLL_EVERY_MS = 200;
const PATHS = ["/connections", "/proxies", "/rules", "/configs"];
/** Sockets of the API's clients, and a connection that has just ended. */
const MORE_DESCRIPTORS = 24;
const BACK_WITHIN_MS = 60_000;

interface Ports {
  readonly plain: number;
  readonly secure: number;
  readonly controller: number;
}

function configText(round: number, { plain, secure, controller }: Ports): string {
  const inner = { listen: "127.0.0.1" };
  return JSON.stringify({
    "external-controller": `127.0.0.1:${controller}`,
    "log-level": round === 0 ? "info" : "error",
    dns: { enable: true, "enhanced-mode": "fake-ip", nameserver: ["127.0.0.1:1"] },
    listeners: [
      { name: "plain", type: "mixed", port: plain, ...inner },
      { name: "secure", type: "mixed", port: secure, ...inner, ...serverTls },
    ],
    "proxy-providers": { nodes: { type: "file", path: "nodes.yaml" } },
    "rule-providers": {
      domains: { type: "file", behavior: "domain", format: "text", path: "domains.txt" },
    },
    "proxy-groups": [{ name: "G", type: "select", proxies: ["DIRECT"], use: ["nodes"] }],
    rules: [
      `DOMAIN-SUFFIX,round${round}.example,G`,
      "RULE-SET,domains,G",
      "IP-CIDR,127.0.0.0/8,DIRECT",
      "MATCH,REJECT",
    ],
  });
}

function writeLists(home: string, round = 0): void {
  writeFileSync(
    join(home, "nodes.yaml"),
    `proxies: [{ name: n${round % 9}, type: socks5, server: 127.0.0.1, port: 2 }]\n`,
  );
  writeFileSync(join(home, "domains.txt"), `+.r${round % 9}.example.com\n`);
}

/** What an operator and his programs do meanwhile. */
function changes(core: Core, ports: Ports, { reloadEveryMs, tun }: MixedPlan) {
  const { controller } = ports;
  const reloads = repeat("a reload", reloadEveryMs, async (round) => {
    core.write(configText(round + 1, ports));
    await ask(controller, "PUT", "/configs?force=true", { path: "" });
  });
  const refreshes = repeat("a refresh", REFRESH_EVERY_MS, async (round) => {
    writeLists(core.home, round);
    for (const path of ["/providers/proxies/nodes", "/providers/rules/domains"])
      await ask(controller, "PUT", path).catch(unlessReplaced);
  });
  const polls = repeat("polling", POLL_EVERY_MS, async (round) => {
    await ask(controller, "GET", PATHS[round % PATHS.length] as string);
  });
  const tuns = tun
    ? repeat("a TUN change", TUN_EVERY_MS, async (round) => {
        const device = { device: "weirmixed", "auto-route": false, "auto-detect-interface": false };
        await ask(controller, "PATCH", "/configs", { tun: { enable: round % 2 === 0, ...device } });
      })
    : null;
  return { reloads, refreshes, polls, tuns };
}

/** A reload ends what its old configuration is fetching, and 503 says so. */
function unlessReplaced(error: unknown): void {
  if (!/: 503 /.test(String(error))) throw error;
}

interface Sample {
  readonly descriptors: number;
  readonly residentMiB: number;
}

const sampleOf = ({ pid }: Core): Sample => ({
  descriptors: openDescriptors(pid),
  residentMiB: residentMiB(pid),
});

export async function proveMixed(plan: MixedPlan): Promise<MixedFindings> {
  const [plain, secure, controller] = (await freePorts(3)) as [number, number, number];
  const ports = { plain, secure, controller };
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(configText(0, ports), { seed: writeLists });
  const doors: readonly Door[] = [plain, secure, plain, secure].map((port) => ({
    port,
    tls: port === secure,
  }));
  const honest = new HonestClients(doors, origin.port, LANE_PAUSE_MS);
  const samples: Sample[] = [];
  await delay(plan.quietMs);
  const quietP99Ms = honest.takeP99();
  const quiet = sampleOf(core);
  const hostile = await underLoad(core, ports, plan, samples);
  const loadP99Ms = honest.takeP99();
  await honest.stop();
  const faults = [...hostile.faults, ...honest.faults];
  const most = quiet.descriptors + MORE_DESCRIPTORS;
  await until("descriptors come back", () => openDescriptors(core.pid) <= most, {
    withinMs: BACK_WITHIN_MS,
  }).catch((error: unknown) => faults.push(String(error)));
  const quarter = Math.max(1, Math.floor(samples.length / 4));
  const [second, last] = [samples.slice(quarter, quarter * 2), samples.slice(-quarter)];
  const after = sampleOf(core);
  return {
    ...hostile,
    exchanges: honest.exchanges,
    quietP99Ms: Math.round(quietP99Ms),
    loadP99Ms: Math.round(loadP99Ms),
    descriptors: [quiet, second, last, after].map((part) => topOf([part].flat())),
    residentMiB: [quiet, second, last, after].map((part) => meanOf([part].flat())),
    faults,
  };
}

async function underLoad(core: Core, ports: Ports, plan: MixedPlan, samples: Sample[]) {
  const args = [HOSTILE, ports.secure, ports.plain, plan.hostileAMinute].map(String);
  const unknownClients = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let came = "";
  unknownClients.stdout.on("data", (text: Buffer) => (came += String(text)));
  const closed = once(unknownClients, "close");
  const { reloads, refreshes, polls, tuns } = changes(core, ports, plan);
  const all: readonly Repeated[] = [reloads, refreshes, polls, ...(tuns === null ? [] : [tuns])];
  for (const endMs = performance.now() + plan.loadMs; performance.now() < endMs; await delay(SAMPLE_MS))
    samples.push(sampleOf(core));
  await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
  unknownClients.kill("SIGTERM");
  await closed;
  return {
    hostile: Number(came),
    reloads: reloads.rounds,
    tunChanges: tuns?.rounds ?? 0,
    faults: all.flatMap((one) => one.faults),
  };
}

const topOf = (samples: readonly Sample[]): number =>
  Math.max(...samples.map(({ descriptors }) => descriptors));
const meanOf = (samples: readonly Sample[]): number =>
  Math.round(samples.reduce((sum, sample) => sum + sample.residentMiB, 0) / samples.length);

export function shownMixed(found: MixedFindings): string {
  const { exchanges, hostile, reloads, tunChanges, quietP99Ms, loadP99Ms, faults } = found;
  return [
    `${exchanges} exchanges of honest clients beside ${hostile} hostile ones, ${reloads} reloads and ${tunChanges} TUN changes`,
    `p99 ${quietP99Ms} ms in quiet, ${loadP99Ms} ms under load`,
    `descriptors ${found.descriptors.join(", ")} and MiB ${found.residentMiB.join(", ")} in quiet, in the second and the last quarter, and behind it`,
    `${faults.length} faults`,
    ...faults,
  ].join("\n");
}
