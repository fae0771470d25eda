/** Visits sites that may become dest of a REALITY server, and ranks them. */
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { messageOf } from "#core/errors.ts";
import { parseHostPort } from "#net/address/address-fields.ts";
import { parseIp } from "#net/address/ip.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { learnOfTarget, type TargetFacts } from "./facts.ts";
import { byWorth, judgeTarget, type Ranked } from "./verdict.ts";

const HTTPS = 443;
const AT_ONCE = 4;

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
}

export interface Probed extends Ranked {
  readonly target: Target;
}

/** `HOST` or `HOST:PORT`; null: it is neither. `name`: the server name to ask for, the host itself where it is null. */
export function parseTarget(word: string, name: string | null = null): Target | null {
  const literal = parseIp(word);
  const parsed = literal === null ? parseHostPort(word.includes(":") ? word : `${word}:${HTTPS}`) : null;
  const { host, port } = parsed ?? { host: literal ?? "", port: HTTPS };
  return host === "" || port === 0 ? null : { host, port, serverName: name ?? host };
}

interface ProbeOptions {
  /** For each site. */
  readonly timeoutMs: number;
  /** A signature of ML-DSA-65 must find room. */
  readonly needsMldsa65: boolean;
  /** Ends all of it; those that are left count as not reached. */
  readonly signal?: AbortSignal;
}

/** The best one first. */
export async function probeTargets(
  targets: readonly Target[],
  { timeoutMs, needsMldsa65, signal }: ProbeOptions,
): Promise<readonly Probed[]> {
  const probed: Probed[] = [];
  const left = targets.values();
  const worker = async (): Promise<void> => {
    for (const target of left) {
      const facts = await learn(target, timeoutMs, signal);
      probed.push({ target, facts, verdict: judgeTarget(facts, target.serverName, needsMldsa65) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return probed.toSorted(byWorth);
}

async function learn(
  { host, port, serverName }: Target,
  timeoutMs: number,
  ended: AbortSignal | undefined,
): Promise<TargetFacts | string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = ended === undefined ? timeout : AbortSignal.any([timeout, ended]);
  const dial = (): Promise<Duplex> => dialTarget(host, port, signal);
  try {
    return await learnOfTarget({ dial, serverName, trust: DEFAULT_TRUST, signal });
  } catch (error) {
    return timeout.aborted ? `no answer within ${timeoutMs} ms` : messageOf(error);
  }
}

function dialTarget(host: string, port: number, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
    const onAbort = (): void => void socket.destroy(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", onAbort));
    socket.once("connect", () => resolve(socket)).on("error", reject);
    if (signal.aborted) onAbort();
  });
}
