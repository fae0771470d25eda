/** Tells that devices, addresses, routes or rules have changed: the multicast groups of rtnetlink(7), coalesced. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Poller, Watch } from "../uv-poll.ts";
import { SystemError } from "../libc.ts";
import type { NetlinkMessage } from "./message.ts";
import { decodeRoute, RTM_DELROUTE, RTM_NEWROUTE } from "./routes.ts";
import type { NetlinkSocket } from "./socket.ts";

const GROUPS = {
  link: [1],
  address: [5, 9],
  route: [7, 11],
  rule: [8, 19],
} as const;
export type NetlinkGroup = keyof typeof GROUPS;

/** Datagrams read in one turn; the rest wakes the next one. */
const MOST_A_TURN = 64;
/** What belongs together comes together: a first look waits this long, */
const SETTLE_MS = 20;
/** and the next ones come no faster than this. */
const EVERY_MS = 1000;

export interface MonitorOptions {
  readonly groups: readonly NetlinkGroup[];
  /** Routes of other tables, other than default routes, are no news: a full Internet table never rests. */
  readonly tables: ReadonlySet<number>;
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
    for (const group of options.groups) for (const number of GROUPS[group]) socket.join(number);
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
        changed ||= messages.some((message) => isNews(message, this.#options.tables));
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

/** Throws `ProtocolError`. */
export function isNews(message: NetlinkMessage, tables: ReadonlySet<number>): boolean {
  if (message.type !== RTM_NEWROUTE && message.type !== RTM_DELROUTE) return true;
  const route = decodeRoute(message);
  return route !== null && (route.destination.bits === 0 || tables.has(route.table));
}
