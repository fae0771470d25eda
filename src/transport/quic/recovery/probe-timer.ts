/** When to ask whether anything arrives: the probe timeout (RFC 9002 §6.2). Milliseconds. */
import { APPLICATION_SPACE, HANDSHAKE_SPACE, type PacketSpace } from "./packet-space.ts";
import type { RttEstimate } from "./rtt.ts";

const MOST_BACKOFF = 10;

export class ProbeTimer {
  /** Of timeouts since something was heard. */
  count = 0;
  /** As the peer said. */
  peerMaxAckDelayMs = 25;
  isConfirmed = false;
  /** When the last packet that asks for an acknowledgement went, of any space. */
  lastSentAtMs = 0;
  readonly #rtt: RttEstimate;

  constructor(rtt: RttEstimate) {
    this.#rtt = rtt;
  }

  /** Of one space; Infinity: nothing is waited for. */
  #at(space: PacketSpace): number {
    if (space.eliciting === 0 || !space.isOpen) return Infinity;
    if (space.id === APPLICATION_SPACE && !this.isConfirmed) return Infinity;
    const delayMs = space.id === APPLICATION_SPACE ? this.peerMaxAckDelayMs : 0;
    return space.lastElicitingAtMs + this.#backedOff(this.#rtt.probeTimeoutMs + delayMs);
  }

  #backedOff(timeoutMs: number): number {
    return timeoutMs * 2 ** Math.min(this.count, MOST_BACKOFF);
  }

  /**
   * When a packet counts as lost or a probe is due; Infinity: never. `mustProbe`: the peer may wait for us to show that our
   * address is ours.
   */
  deadline(spaces: readonly PacketSpace[], mustProbe: boolean): number {
    let atMs = Infinity;
    for (const space of spaces) atMs = Math.min(atMs, space.lossAtMs, this.#at(space));
    if (atMs === Infinity && mustProbe) return this.lastSentAtMs + this.#backedOff(this.#rtt.probeTimeoutMs);
    return atMs;
  }

  /** It is over. Answers with the spaces whose packets go again; a space that has none sends a PING. */
  expire(spaces: readonly PacketSpace[]): readonly PacketSpace[] {
    this.count++;
    const due = spaces.filter((space) => this.#at(space) < Infinity);
    if (due.length > 0) return due;
    const highest = spaces.findLast(({ isOpen, id }) => isOpen && id <= HANDSHAKE_SPACE);
    if (highest !== undefined) highest.probes = 1;
    return [];
  }
}
