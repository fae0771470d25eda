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

export interface SeamPlan {
  /** Of each seam, and of none. */
  readonly secondsEach: number;
  /** How long a seam lasts each time. */
  readonly seamMs: number;
  /** Every piece is asked for, as with a limit that is never reached. */
  readonly limited: boolean;
  readonly random: Random;
}

export async function proveSeams({ secondsEach, seamMs, limited, random }: SeamPlan): Promise<SeamFindings> {
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
      enabled: true,
      global: { enabled: true, ...(limited ? { "download-bps": 8e11 } : {}) },
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
    if (turn < SEAMS.length) process.kill(core.pid, "SIGUSR2");
  }
  load.stop();
  if (faults.length === 0) await lost;
  if (faults.length === 0) faults.push(...(await compare(controller, origin.sums)));
  faults.push(...faultsOf(core));
  return { sessions: load.sessions, unknownClients: load.unknownClients, faults: [...faults] };
}

const faultsOf = (core: Core): readonly string[] =>
  core
    .output()
    .split("\n")
    .filter((line) => /a fault of weir|a thread has ended/.test(line))
    .slice(0, 5);

/** The last sums come a moment behind the last end. */
async function compare(controller: number, peers: ExactSums): Promise<string[]> {
  let own = "";
  const theirs = `${peers.sessions} sessions, ${peers.uploadBytes} up, ${peers.downloadBytes} down`;
  const isSame = async (): Promise<boolean> => {
    const answer = await fetch(`http://127.0.0.1:${controller}/api/svc/traffic-control/status`);
    const { policies } = (await answer.json()) as {
      policies: readonly { counters: Record<string, number> }[];
    };
    const { connections, upload_bytes: up, download_bytes: down } = policies[0]?.counters ?? {};
    own = `${connections} sessions, ${up} up, ${down} down`;
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
