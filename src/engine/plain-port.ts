import { EAGAIN, EINTR, FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { Io } from "./conversation.ts";
import type { Port } from "./port.ts";

/** A kernel socket whose bytes are the conversation's. */
export class PlainPort implements Port {
  readable = false;
  writable = true;
  /** From then on a short read does not mean that it is empty. */
  hungUp = false;
  readonly pending = false;
  readonly bareSocket: number;

  constructor(fd: number) {
    this.bareSocket = fd;
  }

  read({ calls }: Io, size: number): number {
    const bytes = calls.receive(this.bareSocket, size);
    if (bytes < size && !this.hungUp) this.readable = false;
    return bytes;
  }

  available({ calls }: Io): number {
    const bytes = calls.available(this.bareSocket);
    if (bytes > 0) return bytes;
    const next = calls.peek(this.bareSocket);
    if (next > 0) return EINTR; // it came this very moment
    if (next === EAGAIN) this.readable = false;
    return next;
  }

  write({ calls }: Io, size: number): number {
    const sent = calls.send(this.bareSocket, size);
    // A short write says the same as EAGAIN.
    if (sent === EAGAIN || (sent >= 0 && sent < size)) this.writable = false;
    return sent;
  }

  flush(): number {
    return EAGAIN;
  }

  endWriting({ calls }: Io): number {
    return calls.endWriting(this.bareSocket);
  }

  notice(events: number): void {
    if ((events & (READABLE | PEER_ENDED | HANGUP | FAULT)) !== 0) this.readable = true;
    if ((events & (PEER_ENDED | HANGUP | FAULT)) !== 0) this.hungUp = true;
    if ((events & (WRITABLE | HANGUP | FAULT)) !== 0) this.writable = true;
  }

  drop(): void {}
}
