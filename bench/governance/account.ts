/**
 * Flows of random size over every kind of listener under policies of every kind: what policies and reports have counted
 * must be what the origin received and sent, to the byte.
 */
import { openEveryInbound, type Field, type Seen } from "../../test/support/every-inbound.ts";
import { randomFrom } from "../../test/support/random.ts";

const PARALLEL = 24;
const FLOW_MS = 20_000;

export interface AccountResult {
  readonly flows: number;
  /** Series and policies that were compared. */
  readonly compared: number;
  readonly bytes: number;
  readonly byKind: ReadonlyMap<string, number>;
  readonly differences: readonly string[];
}

export async function measureAccount(flows: number, seed = 1): Promise<AccountResult> {
  await using field = await openEveryInbound();
  const random = randomFrom(seed);
  const faults: string[] = [];
  const byKind = new Map<string, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < flows) {
      const kind = field.kinds[next++ % field.kinds.length] as string;
      const size = () => 64 + Math.trunc(2 ** (random(18_000) / 1000)); // most are small, some are 256 KiB
      const pick = (from: number) => from + random(3);
      const flow = { kind, device: pick(2), target: pick(11), upload: size(), download: size() };
      byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
      await inTime(field.run(flow)).catch((error: unknown) => faults.push(`${kind}: ${String(error)}`));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  const differences = [...faults, ...(await differencesOf(field))];
  const all = field.seen.get("global:all");
  return {
    flows,
    compared: field.seen.size,
    bytes: (all?.upload ?? 0) + (all?.download ?? 0),
    byKind,
    differences,
  };
}

async function inTime(work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no end within ${FLOW_MS} ms`)), FLOW_MS);
  await Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

interface Counters {
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly connections: number;
}

const NOTHING: Seen = { upload: 0, download: 0, streams: 0, datagrams: 0 };

async function differencesOf({ controller, seen }: Field): Promise<readonly string[]> {
  const get = async <T>(path: string): Promise<T> =>
    (await (await fetch(`http://127.0.0.1:${controller}${path}`)).json()) as T;
  const found: string[] = [];
  const compare = (what: string, key: string, counted: Counters): void => {
    const { upload, download, streams, datagrams } = seen.get(key) ?? NOTHING;
    const { upload_bytes, download_bytes, connections } = counted;
    // Two flows of datagrams are one session where the system gives the later one the port of the earlier.
    const counts = streams <= connections && connections <= streams + datagrams;
    if (upload_bytes !== upload || download_bytes !== download || !counts)
      found.push(
        `${what} ${key}: ${upload_bytes}/${download_bytes}/${connections} counted, ${upload}/${download}/${streams}+${datagrams} seen`,
      );
  };
  const status = await get<{ policies: { policy: { id: string; kind: string }; counters: Counters }[] }>(
    "/api/svc/traffic-control/status",
  );
  for (const { policy, counters } of status.policies)
    compare("policy", `${policy.kind}:${policy.id}`, counters);
  for (const key of seen.keys()) {
    const path = `/api/svc/traffic-control/reports/summary?granularity=day&from=${daysAgo(2)}&key=${encodeURIComponent(key)}`;
    compare("report", key, (await get<{ summary: Counters }>(path)).summary);
  }
  const totals = await get<{ uploadTotal: number; downloadTotal: number }>("/connections");
  const all = seen.get("global:all");
  if (totals.uploadTotal !== all?.upload || totals.downloadTotal !== all.download)
    found.push(`/connections: ${totals.uploadTotal}/${totals.downloadTotal}`);
  return found;
}

function daysAgo(days: number): number {
  return Math.floor(Date.now() / 1000) - days * 86_400;
}

export async function run(out: (line: string) => void, budget: number): Promise<void> {
  const startedMs = performance.now();
  const { flows, compared, bytes, byKind, differences } = await measureAccount(budget);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  out(`${flows} flows (${[...byKind].map(([kind, count]) => `${count} ${kind}`).join(", ")})`);
  out(
    `${bytes} bytes, ${compared} series and their policies in ${seconds} s: ${differences.length} differences`,
  );
  for (const line of differences.slice(0, 40)) out(`  ${line}`);
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 10_000));
