/** The kernel's table of neighbours, live. */
import type { Log } from "#core/log.ts";
import { messageOf } from "#core/errors.ts";
import { SystemError, libcOf } from "./linux/libc.ts";
import {
  decodeNeighbour,
  eachNeighbour,
  NEIGHBOUR_GROUP,
  type Neighbour,
} from "./linux/netlink/neighbours.ts";
import { NETLINK_ROUTE, NetlinkSocket } from "./linux/netlink/socket.ts";
import { type Watch, Poller } from "./linux/uv-poll.ts";
import { openLinuxFfi } from "./ffi.ts";

export type { Neighbour } from "./linux/netlink/neighbours.ts";

/** Datagrams read at once; further ones are read with the next look, or when the event loop comes round. */
const MOST_READ = 256;
/** More than the kernel lets wait by default. */
const MOST_DISCARDED = 65_536;

export interface NeighbourEvents {
  /** Everything known before is void: `on` is called for all there is now. */
  readonly reset: () => void;
  readonly on: (neighbour: Neighbour) => void;
  readonly log: Log;
}

export class NeighbourWatch implements Disposable {
  readonly #changes: NetlinkSocket;
  readonly #requests: NetlinkSocket;
  readonly #events: NeighbourEvents;
  readonly #watch: Watch;

  /** Throws `SystemError`. */
  constructor(
    changes: NetlinkSocket,
    requests: NetlinkSocket,
    watch: (onReady: () => void) => Watch,
    events: NeighbourEvents,
  ) {
    this.#changes = changes;
    this.#requests = requests;
    this.#events = events;
    changes.join(NEIGHBOUR_GROUP);
    this.#watch = watch(() => this.look());
    this.#watch.hold(false);
    this.#dump();
  }

  /**
   * Takes in what the kernel has said up to now. It says it before the packet that taught it goes on, so a caller that looks
   * after a packet came in knows the sender.
   */
  look(): void {
    try {
      for (let count = 0; count < MOST_READ; count++) {
        const messages = this.#changes.poll();
        if (messages === null) return;
        for (const message of messages) this.#take(decodeNeighbour(message));
      }
    } catch (error) {
      if (!(error instanceof SystemError)) this.#events.log.warning(`neighbours: ${messageOf(error)}`);
      this.#discard(); // ENOBUFS: the kernel dropped some of them
      this.#dump();
    }
  }

  /**
   * What still waits is older than a list that is made now and would undo it; and the kernel drops what comes until nothing
   * waits any more.
   */
  #discard(): void {
    for (let count = 0; count < MOST_DISCARDED; count++)
      try {
        if (this.#changes.poll() === null) return;
      } catch {
        // The list will have what this one told.
      }
  }

  [Symbol.dispose](): void {
    this.#watch.close();
    this.#changes[Symbol.dispose]();
    this.#requests[Symbol.dispose]();
  }

  #dump(): void {
    this.#events.reset();
    try {
      eachNeighbour(this.#requests, (neighbour) => this.#take(neighbour));
    } catch (error) {
      this.#events.log.warning(`neighbours: the table cannot be listed: ${messageOf(error)}`);
    }
  }

  #take(neighbour: Neighbour | null): void {
    if (neighbour !== null) this.#events.on(neighbour);
  }
}

/** Null: this system has no such table, or the runtime cannot ask for it. Throws `SystemError`. */
export function watchNeighbours(events: NeighbourEvents): NeighbourWatch | null {
  const ffi = openLinuxFfi();
  if (ffi === null) return null;
  const [libc, poller] = [libcOf(ffi), new Poller(ffi)];
  using undo = new DisposableStack();
  const changes = undo.use(new NetlinkSocket(ffi, libc, NETLINK_ROUTE));
  const requests = undo.use(new NetlinkSocket(ffi, libc, NETLINK_ROUTE));
  const watch = new NeighbourWatch(changes, requests, (onReady) => poller.watch(changes.fd, onReady), events);
  undo.move();
  return watch;
}
