/** The sessions of clients that one thread reads. Each has the slot of its client, and each of its streams one of its own. */
import type { ClientSession } from "#core/wire-details.ts";
import { type PendingBounds, PendingLimiter } from "#net/listen/pending-limiter.ts";
import { READABLE } from "#platform/linux/relay-calls.ts";
import { SOCKADDR_BYTES, sourceOf } from "#platform/linux/sockaddr.ts";
import { parseScheme } from "#protocols/begin-wire.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { KeptClientStream, KeptSessionHost } from "#dataplane/workers/wire/kept-client.ts";
import { KeptHttp2Session } from "#dataplane/workers/wire/kept-http2-session.ts";
import { KeptMuxSession } from "#dataplane/workers/wire/kept-mux-session.ts";
import { KeptSession } from "#dataplane/workers/wire/kept-session.ts";
import { newMuxFraming } from "#dataplane/workers/wire/mux-framings.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { MuxSessionTask } from "./mux-session-task.ts";
import { PendingConnection } from "./pending-connection.ts";
import type { ClientSessions, PendingOwner, RequestingTask } from "./pending-owner.ts";
import { SessionTask } from "./session-task.ts";
import { StreamBytes, type StreamSession } from "./stream-bytes.ts";
import type { Task } from "./task.ts";

/** Streams of a thread that have said nothing: each costs its client ten bytes, and the thread a hundred times as much. */
const SILENT_BOUNDS: PendingBounds = { count: 16 * 1024, bytes: Infinity };

/** Of the acceptor. */
interface KeptOwner extends PendingOwner {
  readonly shared: AcceptMemory;
  /** -1: there is none. */
  takeSlot(): number;
}

type Client = Pick<RequestingTask, "slot" | "listener">;

export class KeptSessions implements ClientSessions {
  readonly #owner: KeptOwner;
  readonly #silent = new PendingLimiter(SILENT_BOUNDS);

  constructor(owner: KeptOwner) {
    this.#owner = owner;
  }

  /** In the place of a client that has proved itself, or begun. What the kernel has said of it, it says no more. */
  open(client: Client, message: WireMessage, events: number): void {
    const { host } = this.#owner;
    const { slot } = client;
    const inner = host.open(slot * 2 + CLIENT, message);
    const { session } = message.details;
    if (inner === null || session === undefined) return host.end(slot, true);
    host.put(slot, this.#begin(client, inner, session));
    host.wake(slot * 2 + CLIENT, READABLE | events); // it may have come with what was understood
  }

  #begin(client: Client, inner: Wire, asked: ClientSession): Task {
    const { host, shared } = this.#owner;
    const source = sourceOf(shared.sources, client.slot * SOCKADDR_BYTES);
    const services: KeptSessionHost = {
      awaits: (giveWay) => this.#silent.enter(source, 0, giveWay),
      hears: (one) => this.#silent.leave(one),
      onStream: (stream) => this.#onStream(client, session, stream),
      wake: () => host.wake(client.slot * 2 + CLIENT, 0),
      wakeStream: (at, events) => host.wake(at * 2 + CLIENT, events),
    };
    const session = openSession(inner, asked, services);
    return session instanceof KeptSession ? new SessionTask(session) : new MuxSessionTask(session);
  }

  #onStream({ slot, listener }: Client, session: StreamSession, stream: KeptClientStream): boolean {
    const owner = this.#owner;
    const own = owner.takeSlot();
    if (own < 0) return false;
    const { sources } = owner.shared;
    sources.copyWithin(own * SOCKADDR_BYTES, slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
    stream.slot = own;
    const bytes = new StreamBytes(owner.calls.bytes, session, slot, stream);
    const one = new PendingConnection(owner, { slot: own, listener, fd: -1 }, "first-bytes", "", bytes);
    owner.host.put(own, one);
    one.readNow();
    return true;
  }
}

function openSession(
  inner: Wire,
  asked: ClientSession,
  services: KeptSessionHost,
): KeptSession | KeptMuxSession {
  if (asked.frames === "padded")
    return new KeptSession(inner, parseScheme(Buffer.from(asked.padding)), services);
  return asked.frames === "http2"
    ? new KeptHttp2Session(inner, asked.tunnels, services)
    : new KeptMuxSession(inner, newMuxFraming(asked.frames), asked.prefaceBytes, services);
}
