import type { Socket } from "node:net";

export interface KeepAlive {
  readonly disabled: boolean;
  /** Silence before the first probe; 0: the default of 15 s. */
  readonly idleMs: number;
  /** Between probes; 0: the default of 15 s. */
  readonly intervalMs: number;
}

const DEFAULT_MS = 15_000;

export const DEFAULT_KEEP_ALIVE: KeepAlive = { disabled: false, idleMs: 0, intervalMs: 0 };

/** What is really asked for; null: nothing. */
export function probesOf({
  disabled,
  idleMs,
  intervalMs,
}: KeepAlive): { readonly idleMs: number; readonly intervalMs: number } | null {
  return disabled ? null : { idleMs: idleMs || DEFAULT_MS, intervalMs: intervalMs || DEFAULT_MS };
}

/** Finds peers that vanished without a word: their socket fails with ETIMEDOUT. */
export function applyKeepAlive(socket: Socket, keepAlive: KeepAlive): void {
  const probes = probesOf(keepAlive);
  if (probes !== null) socket.setKeepAlive(true, probes.idleMs, probes.intervalMs);
}
