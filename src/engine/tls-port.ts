import { EAGAIN, EINTR, FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { BLOCKED_BY_WRITE, ENDED, type Ssl } from "#platform/linux/ssl.ts";
import type { Io } from "./conversation.ts";
import type { Port } from "./port.ts";

/** A socket that speaks TLS; its handshake is done. The library keeps what it has sealed and the socket has not taken. */
export class TlsPort implements Port {
  /** The library may have read more already than it was asked for. */
  readable = true;
  writable = true;
  hungUp = false;
  readonly pending = false;
  readonly bareSocket = -1;
  readonly #ssl: Ssl;
  readonly #address: bigint;
  readonly #fd: number;
  /** What reading comes to from now on: 0 or an errno; null while it goes on. */
  #last: number | null = null;
  #readsAfterWrite = false;
  #said = false;

  /** The object is the port's own from here on. Its buffer is that of the thread. */
  constructor(ssl: Ssl, address: bigint, fd: number) {
    this.#ssl = ssl;
    this.#address = address;
    this.#fd = fd;
    ssl.readAhead(address);
  }

  read(_io: Io, size: number): number {
    if (this.#last !== null) return this.#last;
    const bytes = this.#ssl.read(this.#address, size);
    const why = this.#see(this.#ssl.outcome);
    return bytes > 0 ? bytes : why;
  }

  available(): number {
    return this.#last ?? this.#see(this.#ssl.available(this.#address));
  }

  /** What an attempt to read came to. */
  #see(outcome: number): number {
    if (outcome > 0 || outcome === EINTR) return outcome;
    if (outcome === EAGAIN || outcome === BLOCKED_BY_WRITE) {
      this.readable = false;
      this.#readsAfterWrite = outcome === BLOCKED_BY_WRITE;
      return EAGAIN;
    }
    this.#last = outcome === ENDED ? 0 : outcome;
    return this.#last;
  }

  /** A record that the library sealed already and could not send goes out when the same bytes come again. */
  write(_io: Io, size: number): number {
    const bytes = this.#ssl.write(this.#address, size);
    if (bytes === EAGAIN || (bytes >= 0 && bytes < size)) this.writable = false;
    return bytes;
  }

  flush(): number {
    return EAGAIN;
  }

  /** First in TLS, then in TCP. */
  endWriting({ calls }: Io): number {
    const said = this.#said ? 0 : this.#ssl.shutdown(this.#address);
    if (said === EAGAIN) this.writable = false;
    if (said < 0) return said;
    this.#said = true;
    return calls.endWriting(this.#fd);
  }

  notice(events: number): void {
    if ((events & (READABLE | PEER_ENDED | HANGUP | FAULT)) !== 0) this.readable = true;
    if ((events & (PEER_ENDED | HANGUP | FAULT)) !== 0) this.hungUp = true;
    if ((events & (WRITABLE | HANGUP | FAULT)) !== 0) this.writable = true;
    if (this.#readsAfterWrite && this.writable) this.readable = true;
  }

  drop(): void {
    this.#ssl.free(this.#address);
  }
}
