import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { recordTypes } from "./recording.ts";
import { type Probe, type Probed, trusted } from "./servers.ts";

export interface Finding {
  readonly server: string;
  readonly kind: string;
  readonly group: number;
  readonly count: number;
  /** Different answers, as what a reader can tell apart. */
  readonly answers: readonly string[];
  readonly medianMs: number;
}

const AT_ONCE = 4;

/**
 * `count` probes of each kind, in turn, so that what else the machine does strikes all alike. `hold`: a probe keeps
 * its side open, and the server has to close; else it ends its side, as most scanners do.
 */
export async function probeServer(probed: Probed, count: number, hold: boolean): Promise<readonly Finding[]> {
  await using serving = await probed.open();
  const kinds = probed.groups.flatMap((probes, group) =>
    probes.map((probe) => ({ probe, group, ...empty() })),
  );
  const replays = kinds.filter(({ probe }) => probe.kind.startsWith("replayed"));
  for (const { probe } of replays) await visit(serving.port, probed, probe, false); // the first one is not yet a replay
  // In another order each round: the order of probes must not count.
  const order = Array.from({ length: count }, () => kinds.toSorted(() => Math.random() - 0.5)).flat();
  let turn = 0;
  const worker = async (): Promise<void> => {
    for (let at = turn++; at < order.length; at = turn++) {
      const kind = order[at] as (typeof kinds)[number];
      const { answer, ms } = await visit(serving.port, probed, kind.probe, hold);
      kind.answers.add(answer);
      kind.times.push(ms);
    }
  };
  await Promise.all(Array.from({ length: hold && probed.silent ? order.length : AT_ONCE }, worker));
  return kinds.map(({ probe, group, answers, times }) => ({
    server: probed.name,
    kind: probe.kind,
    group,
    count: times.length,
    answers: [...answers],
    medianMs: times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN,
  }));
}

const empty = () => ({ answers: new Set<string>(), times: [] as number[] });

async function visit(port: number, { tls, silent, answers, records }: Probed, probe: Probe, hold: boolean) {
  const stream = await open(port, tls);
  const hash = createHash("sha256");
  const kept: Buffer[] = [];
  let size = 0;
  stream.on("data", (bytes: Buffer) => {
    size += bytes.length;
    if (records) kept.push(bytes);
    else hash.update(withoutDates(bytes));
    if (answers) stream.end();
  });
  let end = "reset";
  stream.on("end", () => (end = "end"));
  const closed = new Promise((resolve) => stream.once("close", resolve));
  stream.on("end", () => stream.end());
  const words = probe.next();
  const startedMs = performance.now();
  stream.write(words);
  if (silent && !hold) stream.end();
  await closed;
  const ms = performance.now() - startedMs;
  if (records) return { answer: `${recordTypes(Buffer.concat(kept))} ${end}`, ms };
  return {
    answer: `${size} bytes ${size === 0 ? "" : hash.digest("hex").slice(0, 8)} ${tls ? "" : end}`,
    ms,
  };
}

/** A date would differ between any two answers, and says nothing. */
const withoutDates = (bytes: Buffer): string => bytes.toString("latin1").replaceAll(/^Date: .*$/gim, "Date:");

async function open(port: number, tls: boolean): Promise<Duplex> {
  const place = { port, host: "127.0.0.1", allowHalfOpen: true };
  const stream = tls ? connectTls({ ...place, ...trusted }) : connect(place);
  stream.on("error", () => {});
  await Promise.race([once(stream, tls ? "secureConnect" : "connect"), once(stream, "close")]);
  return stream;
}

/** What a reader of the answers could tell apart within one group; an empty list: nothing. `share`: of the median. */
export function differences(findings: readonly Finding[], share: number): readonly string[] {
  const found: string[] = [];
  const groups = Map.groupBy(findings, ({ server, group }) => `${server} ${group}`);
  for (const [name, members] of groups) {
    const answers = new Set(members.flatMap((one) => one.answers));
    if (answers.size > 1)
      found.push(`${name}: ${members.map((one) => `${one.kind}: ${one.answers.join(", ")}`).join("; ")}`);
    const times = members.map(({ medianMs }) => medianMs);
    const [least, most] = [Math.min(...times), Math.max(...times)];
    if (most > least * (1 + share))
      found.push(`${name}: medians of ${least.toFixed(2)} to ${most.toFixed(2)} ms`);
  }
  return found;
}
