/** What is counted of a policy and of a report's bucket. */
export interface Counters {
  upload: number;
  download: number;
  connections: number;
  /** How often a quota was reached. */
  exceeded: number;
}

export type StoredCounters = readonly [
  upload: number,
  download: number,
  connections: number,
  exceeded: number,
];

export function zero(): Counters {
  return { upload: 0, download: 0, connections: 0, exceeded: 0 };
}

export function addTo(sum: Counters, part: Readonly<Counters>): void {
  sum.upload += part.upload;
  sum.download += part.download;
  sum.connections += part.connections;
  sum.exceeded += part.exceeded;
}

export function differenceOf(now: Readonly<Counters>, before: Readonly<Counters>): Counters {
  return {
    upload: now.upload - before.upload,
    download: now.download - before.download,
    connections: now.connections - before.connections,
    exceeded: now.exceeded - before.exceeded,
  };
}

export function isZero({ upload, download, connections, exceeded }: Readonly<Counters>): boolean {
  return upload === 0 && download === 0 && connections === 0 && exceeded === 0;
}

export function storeCounters(counters: Readonly<Counters>): StoredCounters {
  return [counters.upload, counters.download, counters.connections, counters.exceeded];
}

/** Throws `TypeError` where it is not four numbers. */
export function loadCounters(stored: unknown): Counters {
  if (!Array.isArray(stored) || stored.length !== 4 || !stored.every(Number.isFinite))
    throw new TypeError("counters are four numbers");
  const [upload = 0, download = 0, connections = 0, exceeded = 0]: readonly number[] = stored;
  return { upload, download, connections, exceeded };
}
