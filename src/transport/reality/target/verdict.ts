/** Is a site a good dest? */
import type { TargetFacts } from "./facts.ts";

export interface Verdict {
  /** It cannot be dest. */
  readonly faults: readonly string[];
  /** It can be, and another one would be better. */
  readonly doubts: readonly string[];
}

/** Names at which observers look first: those that Xray warns of. */
const CONSPICUOUS = /apple|icloud|microsoft|\.(?:cn|ir|ru)$/i;

/** `facts` a text: why the site was not reached. */
export function judgeTarget(facts: TargetFacts | string, serverName: string, needsMldsa65: boolean): Verdict {
  if (typeof facts === "string") return { faults: [facts], doubts: [] };
  const { handshakes, page } = facts;
  const faults: string[] = [];
  const doubts: string[] = [];
  if (typeof handshakes === "string") faults.push(handshakes);
  else {
    const room = `its certificates fill a record of ${handshakes.certificateBytes} bytes, which has`;
    if (!handshakes.fitsCertificate) faults.push(`${room} no room for a certificate of ours`);
    else if (!handshakes.fitsMldsa65)
      (needsMldsa65 ? faults : doubts).push(`${room} no room for a signature of ML-DSA-65`);
    if (handshakes.alpn !== "h2") doubts.push("it does not speak h2, as present sites do");
    if (!handshakes.takesX25519) doubts.push("browsers of the time before ML-KEM do not get X25519 at once");
  }
  if (typeof page === "string") faults.push(`a browser would not show it: ${page}`);
  else {
    const elsewhere =
      page.location !== null && URL.parse(page.location)?.hostname !== serverName.toLowerCase();
    if (elsewhere) doubts.push(`it sends its visitors to ${page.location}: that site would be right`);
    if (page.status >= 400) doubts.push(`its first page answers ${page.status}`);
  }
  if (CONSPICUOUS.test(serverName)) doubts.push("it is a name at which observers look first");
  return { faults, doubts };
}

export interface Ranked {
  readonly facts: TargetFacts | string;
  readonly verdict: Verdict;
}

/** The best one first: without faults, with fewer doubts, nearer. */
export function byWorth(a: Ranked, b: Ranked): number {
  const usable = Number(a.verdict.faults.length > 0) - Number(b.verdict.faults.length > 0);
  const doubts = a.verdict.doubts.length - b.verdict.doubts.length;
  return usable || doubts || distance(a) - distance(b);
}

/** A finite number, so that two that were not reached are as far as each other. */
function distance({ facts }: Ranked): number {
  return typeof facts === "string" ? Number.MAX_VALUE : facts.roundTripMs;
}
