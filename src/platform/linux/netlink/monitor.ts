/** Reports changes in the kernel from the multicast groups of netlink(7), coalesced. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Poller, Watch } from "#platform/linux/uv-poll.ts";
import { SystemError } from "#platform/linux/libc.ts";
import type { NetlinkMessage } from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";

/** Datagrams read in one turn; further ones are read in the next. */
const MOST_A_TURN = 64;
/** What belongs together comes together: a first look waits this long, */
const SETTLE_MS = 20;
/** and the next ones come no faster than this. */
const EVERY_MS = 1000;

export interface MonitorOptions {
  readonly groups: readonly number[];
  /** May throw `ProtocolError`. */
  readonly isRelevant: (message: NetlinkMessage) => boolean;
  readonly log: Log;
}

/** Owns the socket. `on` is called at most once a second, the first time at once, never after `dispose`. */
export class Monitor implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #options: MonitorOptions;
  readonly #on: () => void;
  readonly #watch: Watch;
  #timer: NodeJS.Timeout | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(socket: NetlinkSocket, poller: Poller, options: MonitorOptions, on: () => void) {
    this.#socket = socket;
    this.#options = options;
    this.#on = on;
    for (const group of options.groups) socket.join(group);
    this.#watch = poller.watch(socket.fd, () => this.#read());
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#watch.close();
    this.#socket[Symbol.dispose]();
  }

  #read(): void {
    let changed = false;
    try {
      for (let count = 0; count < MOST_A_TURN; count++) {
        const messages = this.#socket.poll();
        if (messages === null) break;
        changed ||= messages.some(this.#options.isRelevant);
      }
    } catch (error) {
      changed = true; // ENOBUFS: the kernel dropped some of them
      if (!(error instanceof SystemError)) this.#options.log.warning(`netlink: ${messageOf(error)}`);
    }
    if (changed) this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== null) return;
    const waitMs = Math.max(SETTLE_MS, this.#lastMs + EVERY_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#lastMs = performance.now();
      this.#on();
    }, waitMs).unref();
  }
}
