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

/** Finds peers that vanished without a word: their socket fails with ETIMEDOUT. */
export function applyKeepAlive(socket: Socket, { disabled, idleMs, intervalMs }: KeepAlive): void {
  if (!disabled) socket.setKeepAlive(true, idleMs || DEFAULT_MS, intervalMs || DEFAULT_MS);
}
