/** Connections as the page shows them: with speeds, filtered and in order. */
import type { Connection, EndedConnection, EndReason, Snapshot } from "#ui/api/types.ts";
import { hostPort } from "#ui/format.ts";
import type { PlainKey } from "#ui/words/words.ts";
import { matching } from "./filter.ts";

export interface LiveConnection extends Connection {
  /** Bytes per second between the last two snapshots. */
  readonly upSpeed: number;
  readonly downSpeed: number;
  readonly name: string;
  /** Unix ms; absent, as the others: it lives. */
  readonly endedAtMs?: number;
  readonly reason?: EndReason;
  readonly detail?: string;
}

/** Each with the key of its name. */
export const ORDERS = [
  ["newest", "connections.newest"],
  ["oldest", "connections.oldest"],
  ["speed", "connections.fastest"],
  ["download", "connections.mostDown"],
  ["upload", "connections.mostUp"],
  ["name", "connections.destination"],
] as const;
export type Order = (typeof ORDERS)[number][0];

/** Turns snapshots into connections with speeds; remembers the snapshot before. */
export class Speedometer {
  #before = new Map<string, Connection>();
  #atMs = 0;

  read({ connections }: Snapshot, nowMs: number): readonly LiveConnection[] {
    const seconds = Math.max(0.05, (nowMs - this.#atMs) / 1000);
    const list = connections ?? [];
    const live = list.map((connection) => {
      const before = this.#before.get(connection.id);
      const { upload, download } = before ?? connection; // the speed of a new one is not known yet
      return {
        ...connection,
        name: nameOf(connection),
        upSpeed: (connection.upload - upload) / seconds,
        downSpeed: (connection.download - download) / seconds,
      };
    });
    const now = new Map(list.map((connection) => [connection.id, connection]));
    this.#before = now;
    this.#atMs = nowMs;
    return live;
  }
}

/** As the program lists them, the newest first. */
export function endedOf(list: readonly EndedConnection[]): readonly LiveConnection[] {
  return list.map((connection) => ({
    ...connection,
    name: nameOf(connection),
    upSpeed: 0,
    downSpeed: 0,
    endedAtMs: Date.parse(connection.end),
  }));
}

/** Each with the key of its name. */
export const REASONS: Readonly<Record<EndReason, PlainKey>> = {
  over: "ended.over",
  closed: "ended.closed",
  silent: "ended.silent",
  "client-lost": "ended.clientLost",
  "remote-lost": "ended.remoteLost",
  "not-dialled": "ended.notDialled",
  rejected: "ended.rejected",
};

/** Of one that has ended, its whole life. */
export const ageMs = ({ start, endedAtMs = Date.now() }: LiveConnection): number =>
  endedAtMs - Date.parse(start);

function nameOf({ metadata }: Connection): string {
  const { host, sniffHost, destinationIP, destinationPort } = metadata;
  return hostPort(host || sniffHost || destinationIP, destinationPort);
}

export function arrange(
  connections: readonly LiveConnection[],
  filter: string,
  order: Order,
): readonly LiveConnection[] {
  return matching(connections, filter, textOf).toSorted(COMPARE[order]);
}

/** What the filter looks at. */
function textOf({ name, metadata, chains, rule, rulePayload, ...rest }: LiveConnection): string {
  const { network, type, sourceIP, destinationIP, sniffHost, inboundName, inboundUser, process } = metadata;
  return [name, network, type, sourceIP, destinationIP, sniffHost, inboundName, inboundUser, process]
    .concat(rule, rulePayload, chains, rest.reason ?? "", rest.detail ?? "")
    .join("\n");
}

type Compare = (a: LiveConnection, b: LiveConnection) => number;
const byStart: Compare = (a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0);
const COMPARE: Readonly<Record<Order, Compare>> = {
  newest: (a, b) => byStart(b, a),
  oldest: byStart,
  speed: (a, b) => b.upSpeed + b.downSpeed - (a.upSpeed + a.downSpeed) || byStart(b, a),
  download: (a, b) => b.download - a.download || byStart(b, a),
  upload: (a, b) => b.upload - a.upload || byStart(b, a),
  name: (a, b) => a.name.localeCompare(b.name) || byStart(b, a),
};
