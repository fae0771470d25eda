/**
 * Workers under load, with each seam between them and the main thread lasting for a while in turn: the program lives,
 * and has counted every session to the byte as the peers have.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SEAMS } from "#dataplane/workers/shared/seams.ts";
import { ExactLoad, openExactOrigin, type ExactSums, type Random } from "../support/exact-load.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { serverTls } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

export interface SeamFindings {
  readonly sessions: number;
  readonly unknownClients: number;
  /** What the program has counted and the peers have not, or the other way round, a line each; and how it ended, if it did. */
  readonly faults: readonly string[];
}

/**
 * `limited`: every piece is asked for, as with a limit that is never reached. `unlimited`: sessions are counted for policies.
 * `alone`: there are no policies, and workers decide what they can by themselves.
 */
export type Accounting = "limited" | "unlimited" | "alone";

export interface SeamPlan {
  /** Of each seam, and of none. */
  readonly secondsEach: number;
  /** How long a seam lasts each time. */
  readonly seamMs: number;
  readonly accounting: Accounting;
  readonly random: Random;
}

export async function proveSeams({
  secondsEach,
  seamMs,
  accounting,
  random,
}: SeamPlan): Promise<SeamFindings> {
  await using origin = await openExactOrigin();
  const [tunnel, plain, secure, controller] = (await freePorts(4)) as [number, number, number, number];
  const inner = { listen: "127.0.0.1" };
  const config = JSON.stringify({
    "external-controller": `127.0.0.1:${controller}`,
    rules: ["MATCH,DIRECT"],
    listeners: [
      {
        name: "tunnel",
        type: "tunnel",
        port: tunnel,
        network: ["tcp"],
        target: `127.0.0.1:${origin.port}`,
        ...inner,
      },
      { name: "plain", type: "mixed", port: plain, ...inner },
      { name: "secure", type: "mixed", port: secure, ...inner, ...serverTls },
    ],
    "traffic-control": {
      enabled: accounting !== "alone",
      global: { enabled: true, ...(accounting === "limited" ? { "download-bps": 8e11 } : {}) },
    },
  });
  const program = fileURLToPath(new URL("../support/seamed-core.ts", import.meta.url));
  const prefix = [process.execPath, "--disable-warning=ExperimentalWarning"];
  await using core = await startCore(config, {
    // Beside busy processes a start takes as long as they let it.
    timeoutMs: 600_000,
    program,
    prefix,
    env: { SEAM_MS: String(seamMs) },
  });
  // From here on no line a session.
  await fetch(`http://127.0.0.1:${controller}/configs`, { method: "PATCH", body: '{"log-level":"error"}' });
  const load = new ExactLoad({ tunnel, plain, secure }, origin, random);
  const running = load.run({ plain: 24, secure: 4, unknownClients: 4 });
  const faults: string[] = [];
  const ended = core.exited.then((code) => faults.push(`the program has ended: ${code ?? "by a signal"}`));
  let seam: string = "no seam";
  const lost = running.catch((error: unknown) => faults.push(`${seam}: ${String(error)}`));
  for (let turn = 0; turn <= SEAMS.length && faults.length === 0; turn++) {
    seam = SEAMS[turn - 1] ?? seam;
    await Promise.race([delay(secondsEach * 1_000), ended, lost]);
    if (turn < SEAMS.length) process.kill(core.pid, "SIGWINCH");
  }
  load.stop();
  if (faults.length === 0) await lost;
  if (faults.length === 0)
    faults.push(...(await compare(accounting === "alone" ? totalsOf : countersOf, controller, origin.sums)));
  if (faults.length > 0) faults.push(...origin.complaints.map((line) => `the origin: ${line}`));
  faults.push(...faultsOf(core));
  return { sessions: load.sessions, unknownClients: load.unknownClients, faults: [...faults] };
}

const faultsOf = (core: Core): readonly string[] =>
  core
    .output()
    .split("\n")
    .filter((line) => /a fault of weir|a thread has ended/.test(line))
    .slice(0, 5);

type Counted = readonly [
  sessions: number | undefined,
  uploadBytes: number | undefined,
  downloadBytes: number | undefined,
];

async function read<T>(controller: number, path: string): Promise<T> {
  return (await (await fetch(`http://127.0.0.1:${controller}${path}`)).json()) as T;
}

/** As the policy of all sessions has them. */
async function countersOf(controller: number): Promise<Counted> {
  const { policies } = await read<{ policies: readonly { counters: Record<string, number> }[] }>(
    controller,
    "/api/svc/traffic-control/status",
  );
  const { connections, upload_bytes: up, download_bytes: down } = policies[0]?.counters ?? {};
  return [connections, up, down];
}

/** As the one rule and the totals have them. */
async function totalsOf(controller: number): Promise<Counted> {
  const { rules } = await read<{ rules: readonly { extra: { hitCount: number } }[] }>(controller, "/rules");
  const { uploadTotal, downloadTotal } = await read<{ uploadTotal: number; downloadTotal: number }>(
    controller,
    "/connections",
  );
  return [rules[0]?.extra.hitCount, uploadTotal, downloadTotal];
}

const sumsText = ([sessions, up, down]: Counted): string => `${sessions} sessions, ${up} up, ${down} down`;

/** A client is done before its last bytes are with the origin, and the last sums come a moment behind the last end. */
async function compare(
  counted: (controller: number) => Promise<Counted>,
  controller: number,
  peers: ExactSums,
): Promise<string[]> {
  let [own, theirs] = ["", ""];
  const isSame = async (): Promise<boolean> => {
    own = sumsText(await counted(controller));
    theirs = sumsText([peers.sessions, peers.uploadBytes, peers.downloadBytes]);
    return own === theirs;
  };
  try {
    await until("the same sums", isSame);
    return [];
  } catch (error) {
    return [`counted ${own}; the peers ${theirs} (${String(error)})`];
  }
}

export function shownSeams({ sessions, unknownClients, faults }: SeamFindings): string {
  return `${sessions} sessions beside ${unknownClients} unauthenticated clients, ${faults.length} faults`;
}
