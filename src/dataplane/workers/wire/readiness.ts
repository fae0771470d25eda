import { FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";

/** What the kernel has said of a port's socket; see `Port`. */
export class Readiness {
  /** At first: what was read before the port was made may hold something. */
  readable = true;
  writable = true;
  hungUp = false;
  readonly bareSource: number = -1;
  readonly bareTarget: number = -1;

  onEvents(events: number): void {
    if ((events & (READABLE | PEER_ENDED | HANGUP | FAULT)) !== 0) this.readable = true;
    if ((events & (PEER_ENDED | HANGUP | FAULT)) !== 0) this.hungUp = true;
    if ((events & (WRITABLE | HANGUP | FAULT)) !== 0) this.writable = true;
  }
}
