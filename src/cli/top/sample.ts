/** What the running weir says of one moment, and rates from it and the moment before. */
import * as z from "zod";

const text = () => z.string().catch("");
const count = () => z.number().nonnegative().catch(0);

const connectionsShape = z.object({
  uploadTotal: count(),
  downloadTotal: count(),
  memory: count(),
  connections: z
    .array(
      z.object({
        id: z.string(),
        upload: count(),
        download: count(),
        start: text(),
        chains: z.array(z.string()).catch([]),
        metadata: z.object({
          network: text(),
          sourceIP: text(),
          destinationIP: text(),
          destinationPort: text(),
          host: text(),
          inboundUser: text(),
          inboundName: text(),
        }),
      }),
    )
    .nullable()
    .transform((list) => list ?? []),
});

const statusShape = z.object({
  policies: z.array(
    z.object({
      policy: z.object({
        id: z.string(),
        name: text(),
        kind: text(),
        upload_bps: count(),
        download_bps: count(),
      }),
      counters: z.object({ upload_bytes: count(), download_bytes: count() }),
      active_connections: count(),
      over_quota: z.boolean().catch(false),
    }),
  ),
});

/** Bytes since some beginning. */
interface Counted {
  readonly key: string;
  readonly up: number;
  readonly down: number;
}

export interface Row extends Counted {
  readonly label: string;
  readonly connections: number;
  /** Bytes a second; 0 where it was not there before. */
  readonly upRate: number;
  readonly downRate: number;
}

export interface ConnectionRow extends Row {
  readonly source: string;
  readonly way: string;
  readonly startedAtMs: number;
}

export interface PolicyRow extends Row {
  readonly kind: string;
  readonly isOver: boolean;
  /** Bits a second; 0: no limit. */
  readonly upLimit: number;
  readonly downLimit: number;
}

export interface Sample {
  readonly atMs: number;
  readonly memory: number;
  readonly total: Row;
  readonly connections: readonly ConnectionRow[];
  /** By user, else by source address. */
  readonly users: readonly Row[];
  /** Null: traffic control is off, or the secret does not open it. */
  readonly policies: readonly PolicyRow[] | null;
}

/** `connections` and `status` are answers of the Controller. Throws where they have another shape. */
export function readSample(
  { connections, status }: { readonly connections: unknown; readonly status: unknown },
  before: Sample | null,
  atMs: number,
): Sample {
  const read = connectionsShape.parse(connections);
  const rate = ratesSince(before, atMs);
  const known = new Map(before?.connections.map((row) => [row.key, row]));
  const rows = read.connections.map(({ id, upload, download, start, chains, metadata }): ConnectionRow => {
    const { host, destinationIP, destinationPort, network, inboundUser, sourceIP } = metadata;
    const counted = { key: id, up: upload, down: download };
    return {
      ...counted,
      ...rate(counted, known.get(id) ?? { key: id, up: 0, down: 0 }), // a young one came since the moment before
      label: `${host || destinationIP}:${destinationPort}${network === "udp" ? " udp" : ""}`,
      source: inboundUser || sourceIP,
      way: chains[0] ?? "",
      startedAtMs: Date.parse(start) || atMs,
      connections: 1,
    };
  });
  const total = { key: "", up: read.uploadTotal, down: read.downloadTotal };
  return {
    atMs,
    memory: read.memory,
    total: { ...total, ...rate(total, before?.total), label: "", connections: rows.length },
    connections: rows,
    users: usersOf(rows),
    policies: policiesOf(status, before, rate),
  };
}

type RateOf = (now: Counted, then: Counted | undefined) => Pick<Row, "upRate" | "downRate">;

function ratesSince(before: Sample | null, atMs: number): RateOf {
  const seconds = before === null ? 0 : (atMs - before.atMs) / 1000;
  return (now, then) => {
    if (then === undefined || seconds <= 0) return { upRate: 0, downRate: 0 };
    const since = (a: number, b: number): number => Math.max(0, a - b) / seconds;
    return { upRate: since(now.up, then.up), downRate: since(now.down, then.down) };
  };
}

function usersOf(rows: readonly ConnectionRow[]): readonly Row[] {
  const sum = (list: readonly ConnectionRow[], of: (row: ConnectionRow) => number): number =>
    list.reduce((all, row) => all + of(row), 0);
  return [...Map.groupBy(rows, ({ source }) => source)].map(([source, own]) => ({
    key: source,
    label: source,
    connections: own.length,
    up: sum(own, ({ up }) => up),
    down: sum(own, ({ down }) => down),
    upRate: sum(own, ({ upRate }) => upRate),
    downRate: sum(own, ({ downRate }) => downRate),
  }));
}

function policiesOf(status: unknown, before: Sample | null, rate: RateOf): readonly PolicyRow[] | null {
  const read = statusShape.safeParse(status);
  if (!read.success) return null;
  const known = new Map(before?.policies?.map((row) => [row.key, row]));
  return read.data.policies.map(({ policy, counters, active_connections, over_quota }) => {
    const counted = { key: policy.id, up: counters.upload_bytes, down: counters.download_bytes };
    return {
      ...counted,
      ...rate(counted, known.get(policy.id)),
      label: policy.name || policy.id,
      kind: policy.kind,
      connections: active_connections,
      isOver: over_quota,
      upLimit: policy.upload_bps,
      downLimit: policy.download_bps,
    };
  });
}
