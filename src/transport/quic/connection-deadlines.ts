/** When something is due in one connection. Milliseconds; Infinity: never. */
import type { ConnectionParts } from "./connection-parts.ts";

export class Deadlines {
  readonly #parts: ConnectionParts;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** The first of all. */
  get firstMs(): number {
    const { paths, sender, spaces } = this.#parts;
    const { current, dueAtMs } = paths;
    if (current.isHeldBack) return Math.min(this.idleMs, dueAtMs);
    let atMs = Math.min(sender.pacedAtMs, this.idleMs, this.keepAliveMs, dueAtMs);
    for (const space of spaces) if (space.isOpen) atMs = Math.min(atMs, space.received.dueAtMs);
    return Math.min(atMs, this.recoveryMs);
  }

  /** A packet counts as lost, or a probe is to be sent. */
  get recoveryMs(): number {
    const { recovery, spaces } = this.#parts;
    return recovery.deadline(spaces, this.mustProbe);
  }

  /** As of `ProbeTimer.deadline`. */
  get mustProbe(): boolean {
    const { isServer, recovery } = this.#parts;
    return !isServer && !recovery.probes.isConfirmed;
  }

  /** The peer has been silent for too long. */
  get idleMs(): number {
    const { idle, recovery } = this.#parts;
    return idle.idleAtMs(recovery.rtt.probeTimeoutMs);
  }

  get keepAliveMs(): number {
    const { establishment, streams, sender, idle } = this.#parts;
    const isWanted = establishment.isConnected && streams.size > 0 && !sender.wantsPing;
    return isWanted ? idle.keepAliveAtMs : Infinity;
  }
}
