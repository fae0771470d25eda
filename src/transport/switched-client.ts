import type { Duplex } from "node:stream";
import type { AcceptedConnection, Switched } from "#core/accepted.ts";
import { guardErrors } from "#net/listen/accept.ts";
import type { Secured } from "./security.ts";
import { framed } from "./websocket/client.ts";
import { ShownFrames } from "./websocket/shown-frames.ts";

/** A client whose request to switch a worker has answered; see `AcceptedConnection`. Looking at its stream takes the socket. */
export class SwitchedClient implements Secured {
  readonly bypass = null;
  readonly connection?: AcceptedConnection;
  readonly frames?: ShownFrames;
  readonly #below: Secured;
  readonly #switched: Switched;
  #stream: Duplex | null = null;

  constructor(below: Secured, switched: Switched) {
    const { connection } = below;
    this.#below = below;
    this.#switched = switched;
    const shown = connection?.worker?.request ?? null;
    if (connection === undefined || shown === null) return;
    const frames = switched === "frames" ? ShownFrames.of(shown) : null;
    if (frames !== null) this.frames = frames;
    else if (switched === "frames") connection.worker?.understood(0); // the event loop reads them all
    if (frames !== null || switched === "stream") this.connection = connection;
  }

  get alpn(): string | null {
    return this.#below.alpn;
  }

  get serverName(): string | null {
    return this.#below.serverName;
  }

  get stream(): Duplex {
    this.#stream ??= this.#open();
    return this.#stream;
  }

  #open(): Duplex {
    const { stream } = this.#below;
    if (this.#switched === "stream") return stream;
    const opened = framed(stream, "server", this.frames?.reading);
    guardErrors(opened);
    return opened;
  }
}
