/**
 * Closes captured TCP connections over which no byte has ever gone (kernel-direct.md §5): the sign of an undetected
 * loop. Listeners that clients chose themselves are left alone: a server may send first there.
 */
import type { LiveEntry, LiveTable } from "./connections.ts";
import { TRANSPARENT } from "./loop-detector.ts";

const PERIOD_MS = 5_000;
const SILENT_MS = 30_000;
/** IPsec key exchange: it may wait for long. */
const PATIENT_PORTS: ReadonlySet<number> = new Set([500, 4500]);

/** Looks every 5 s, where `wanted` says so, until it is disposed of. */
export function startReaper(live: LiveTable, wanted: () => boolean): Disposable {
  const timer = setInterval(() => {
    if (wanted()) reap(live, performance.now());
  }, PERIOD_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

export function reap(live: LiveTable, nowMs: number): void {
  live.look(); // what an engine moved lately counts
  live.closeAll((connection) => isSilent(connection, nowMs), "silent");
}

function isSilent({ metadata, dialledAtMs, uploadBytes, downloadBytes }: LiveEntry, nowMs: number): boolean {
  const { network, inbound, destination } = metadata;
  if (network !== "tcp" || dialledAtMs === null || nowMs - dialledAtMs < SILENT_MS) return false;
  if (uploadBytes + downloadBytes > 0 || PATIENT_PORTS.has(destination.port)) return false;
  return TRANSPARENT.has(inbound.type);
}
