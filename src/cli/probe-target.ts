import { readFileSync } from "node:fs";
import type { TargetFacts } from "#transport/reality/target/facts.ts";
import { parseTarget, probeTargets, type Probed, type Target } from "#transport/reality/target/probe.ts";
import { type FlagTable, parseFlags, usageText, UsageError } from "./flags.ts";

const FLAGS: FlagTable = {
  f: { kind: "text", value: "FILE", help: "a list of sites, one a line; -: standard input" },
  name: { kind: "text", value: "NAME", help: "the server name to ask for (the host itself)" },
  mldsa65: { kind: "switch", help: "a signature of ML-DSA-65 must find room" },
  timeout: { kind: "text", value: "MS", help: "for each site (15000)" },
  json: { kind: "switch", help: "print JSON" },
};

export const PROBE_TARGET_USAGE = usageText(
  `usage: weir probe-target HOST[:PORT]… [flags]

Visits sites as a browser would and says which can be dest of a REALITY server, the best one first.
Ends with 0 where the first one can, else with 1.
`,
  FLAGS,
);

const TIMEOUT_MS = 15_000;
const MOST_TARGETS = 1000;

/** `weir probe-target HOST…`: which sites can be dest, ranked. */
export async function probeTarget(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flagAt = args.findIndex((word) => word.startsWith("-"));
  const ahead = flagAt < 0 ? args : args.slice(0, flagAt);
  const flags = parseFlags(flagAt < 0 ? [] : args.slice(flagAt), FLAGS, env);
  const timeoutMs = Number(flags.text("timeout") ?? TIMEOUT_MS);
  const words = [...ahead, ...flags.rest, ...listed(flags.text("f"))];
  const targets = [...new Set(words)].map((word) => targetOf(word, flags.text("name")));
  if (targets.length === 0 || targets.length > MOST_TARGETS || !(timeoutMs > 0))
    throw new UsageError(`probe-target: expected 1 to ${MOST_TARGETS} sites\n${PROBE_TARGET_USAGE}`);
  const probed = await probeTargets(targets, { timeoutMs, needsMldsa65: flags.on("mldsa65") });
  process.stdout.write(
    flags.on("json") ? `${JSON.stringify(probed.map(asJson), null, 2)}\n` : asText(probed),
  );
  return probed[0]?.verdict.faults.length === 0 ? 0 : 1;
}

function listed(file: string | null): readonly string[] {
  if (file === null) return [];
  const lines = readFileSync(file === "-" ? 0 : file, "utf8").split("\n");
  return lines.map((line) => line.replace(/#.*/, "").trim()).filter((line) => line !== "");
}

/** Throws `UsageError`. */
function targetOf(word: string, name: string | null): Target {
  const target = parseTarget(word, name);
  if (target !== null) return target;
  throw new UsageError(`probe-target: expected a site as HOST or HOST:PORT, got ${JSON.stringify(word)}`);
}

function asJson({ target, facts, verdict }: Probed): object {
  const { host, port, serverName } = target;
  const learnt = typeof facts === "string" ? {} : facts;
  return { host, port, serverName, usable: verdict.faults.length === 0, ...verdict, ...learnt };
}

function asText(probed: readonly Probed[]): string {
  return probed.flatMap((one, at) => linesOf(one, at + 1)).join("\n") + "\n";
}

function linesOf({ target, facts, verdict }: Probed, rank: number): readonly string[] {
  const { faults, doubts } = verdict;
  const word = faults.length > 0 ? "cannot be dest" : doubts.length > 0 ? "can be dest" : "good";
  const indent = "   ";
  return [
    `${rank}. ${target.host}:${target.port}: ${word}`,
    ...(typeof facts === "string" ? [] : factLines(facts)).map((line) => `${indent}${line}`),
    ...faults.map((text) => `${indent}fault: ${text}`),
    ...doubts.map((text) => `${indent}doubt: ${text}`),
  ];
}

function factLines({ roundTripMs, handshakeMs, handshakes, page }: TargetFacts): readonly string[] {
  const times = `round trip ${roundTripMs.toFixed(1)} ms, handshake ${handshakeMs.toFixed(1)} ms`;
  if (typeof handshakes === "string") return [times];
  const { alpn, group, takesX25519, certificateBytes, fitsMldsa65, later } = handshakes;
  const groups = takesX25519 && group !== "X25519" ? `${group} and X25519` : group;
  return [
    times,
    `TLS 1.3, ${alpn ?? "no ALPN"}, ${groups}`,
    `record of its certificates ${certificateBytes} bytes (ML-DSA-65: ${fitsMldsa65 ? "yes" : "no"}); behind the handshake ${later.length === 0 ? "nothing" : `${later.join(", ")} bytes`}`,
    ...(typeof page === "string"
      ? []
      : [`first page ${page.status}${page.location === null ? "" : `, leads to ${page.location}`}`]),
  ];
}
