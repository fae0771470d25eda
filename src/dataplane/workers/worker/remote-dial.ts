import { SOCKADDR_IN_BYTES } from "#platform/linux/sockaddr.ts";
import { FAULT, HANGUP } from "#platform/linux/relay-calls.ts";
import { int32At } from "#lib/at.ts";
import type { WireStart } from "#core/handover.ts";
import type { TlsRecipe } from "#core/tls-recipe.ts";
import { DIAL_TIMED_OUT, TLS_NOT_OPENED, type Dial } from "#dataplane/workers/shared/accept-memory.ts";
import { DIALLED } from "#dataplane/workers/shared/relay-memory.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import { RemoteBrowserTls } from "./remote-browser-tls.ts";
import { RemoteLibraryTls, type RemoteTls } from "./remote-tls.ts";

const EINPROGRESS = -115;
/** For TLS, once the socket is connected: then the main thread dials anew, and waits as long as the client. */
const HANDSHAKE_MS = 5_000;

/**
 * The dial of a pending connection: by the main thread's plan, or as it was decided here, of which the main thread knows
 * nothing. The descriptor of its socket stands only in the relay memory, where the main thread finds it should this
 * worker die.
 */
export class RemoteDial {
  /** What the kernel has said of the socket, epoll(7) bits. */
  events = 0;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  readonly #dial: Dial;
  /** It was decided by this worker. */
  readonly isDecided: boolean;
  readonly #tls: RemoteTls | null;
  #isConnected = false;
  #hasMoreTime: boolean;

  /** `tls`: what is opened before the wire is begun. */
  constructor(
    owner: PendingOwner,
    slot: number,
    dial: Dial,
    { isDecided, tls }: { readonly isDecided: boolean; readonly tls: TlsRecipe | undefined },
  ) {
    this.#tls = tls === undefined ? null : remoteTls(owner, slot, tls);
    this.#hasMoreTime = tls !== undefined;
    this.#owner = owner;
    this.#slot = slot;
    this.#dial = dial;
    this.isDecided = isDecided;
  }

  get timeoutMs(): number {
    return this.#dial.timeoutMs;
  }

  /** Of those that were decided here. */
  get isFirstOfMany(): boolean {
    return this.#dial.isFirstOfMany === true;
  }

  /** What lies over the socket now that it is connected. `planned`: what came with the command. */
  begin(planned: WireMessage): OpenMessage {
    const { host } = this.#owner;
    const index = this.#slot * 2 + 1;
    const wire = this.#dial.wire?.();
    if (this.#tls === null) return wire === undefined ? planned : host.begin(index, wire);
    const { onTicket, ...state } = this.#tls.take();
    const over: WireStart = wire ?? { ...planned, kind: planned.tls?.kind ?? "tls", numbers: [] };
    const message = host.begin(index, { ...over, ...state });
    return onTicket === undefined ? message : { ...message, onTicket };
  }

  /** What is added to the time that it was given, in ms: once, where it is connected and TLS is under way. */
  takeMoreMs(): number {
    const isGranted = this.#hasMoreTime && this.#isConnected;
    if (isGranted) this.#hasMoreTime = false;
    return isGranted ? HANDSHAKE_MS : 0;
  }

  /** What stands for an errno where it took too long. */
  get lateErrno(): number {
    return this.#isConnected ? TLS_NOT_OPENED : DIAL_TIMED_OUT;
  }

  /** For the client, once it is connected. */
  get replyBytes(): Uint8Array {
    return this.#dial.replyBytes;
  }

  /** -1: none is open. */
  get descriptor(): number {
    return int32At(this.#owner.table.descriptors, this.#slot * 2 + 1);
  }

  /** Opens the socket and begins to connect it. Not 0: an errno, or `TLS_NOT_OPENED`; `fail` is to be called. */
  start(): number {
    const { calls, table } = this.#owner;
    const { address, mark, idleSeconds, intervalSeconds, device } = this.#dial;
    const family = address.length === SOCKADDR_IN_BYTES ? 4 : 6;
    const fd = calls.open(family);
    if (fd < 0) return fd;
    // Before a packet leaves: a connection that comes back to this machine is recognised by the name of this socket.
    Atomics.store(table.descriptors, this.#slot * 2 + 1, fd);
    // Most connections end before a probe would be due, and the main thread joins the others: see `onJoined`.
    const isProbed = idleSeconds > 0 && !this.isDecided;
    if (isProbed) calls.keepAlive(fd, idleSeconds, intervalSeconds);
    const marked = mark === 0 ? 0 : calls.mark(fd, mark);
    const bound = device.length === 0 ? 0 : calls.bindToDevice(fd, family, device);
    if (marked < 0 || bound < 0) return Math.min(marked, bound);
    if (this.#tls?.open(fd) === false) return TLS_NOT_OPENED;
    calls.address.set(address);
    const error = calls.connect(fd, address.length);
    return error === EINPROGRESS ? 0 : error;
  }

  /** Null: there is no answer yet. 0: connected, with TLS where it belongs. Else an errno, or `TLS_NOT_OPENED`. */
  takeResult(): number | null {
    if (this.events === 0) return null;
    if (!this.#isConnected && (this.events & (FAULT | HANGUP)) !== 0)
      return this.#owner.calls.takeError(this.descriptor);
    this.#isConnected = true;
    return this.#tls === null ? 0 : this.#tls.advance();
  }

  /** It is connected. False: it was decided by rules that are no longer in force, and is to be given up. */
  commit(): boolean {
    return !this.isDecided || this.#owner.decider.commit(this.#slot);
  }

  /** From now on the connection is relayed. */
  succeed(): void {
    this.#tls?.settle();
    if (!this.isDecided) this.#owner.host.reportLazily(this.#slot, DIALLED);
  }

  /** Of a connection that ends before it is relayed: what the loop does not free. */
  drop(): void {
    this.#tls?.free();
  }

  /** Closes the socket. */
  fail(): void {
    this.drop();
    const { calls, host, table } = this.#owner;
    const fd = this.descriptor;
    // First: the name of another socket with this number must not be asked for.
    Atomics.store(table.descriptors, this.#slot * 2 + 1, -1);
    host.atSeam?.("closing");
    if (fd >= 0) calls.close(fd);
    if (this.isDecided) this.#owner.decider.giveUp(this.#slot);
  }
}

function remoteTls(owner: PendingOwner, slot: number, recipe: TlsRecipe): RemoteTls {
  return recipe.kind === "tls"
    ? new RemoteLibraryTls(owner, slot, recipe)
    : new RemoteBrowserTls(owner, recipe);
}
