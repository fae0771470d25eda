import { SOCKADDR_IN_BYTES } from "#platform/linux/sockaddr.ts";
import { FAULT, HANGUP, WRITABLE } from "#platform/linux/relay-calls.ts";
import { int32At } from "#lib/at.ts";
import type { WireStart } from "#core/wire-state.ts";
import type { TlsRecipe } from "#core/tls-recipe.ts";
import type { SessionRecipe, UnderlayRecipe } from "#core/wire-recipe.ts";
import { DIAL_TIMED_OUT, UNDERLAY_FAILED, type Dial } from "#dataplane/workers/shared/request-memory.ts";
import { DIALLED } from "#dataplane/workers/shared/opcodes.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import { RemoteBrowserTls } from "./remote-browser-tls.ts";
import { RemotePlain } from "./remote-plain.ts";
import type { NodeSession, SessionOrigin } from "#dataplane/workers/wire/node-session.ts";
import { NodeStream } from "#dataplane/workers/wire/node-stream.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { AdoptedSession } from "./adopted-session.ts";
import type { RemoteStage, StageState } from "./remote-stage.ts";
import { SessionPlace } from "./session-place.ts";
import { RemoteLibraryTls } from "./remote-tls.ts";
import type { Remote } from "./remote.ts";
import { RemoteUpgrade } from "./remote-upgrade.ts";

const EINPROGRESS = -115;
/** For what is opened once the socket is connected: then the main thread dials anew, and waits as long as the client. */
const HANDSHAKE_MS = 5_000;

export interface RemoteDialOptions {
  readonly isDecided: boolean;
  /** What is opened before the wire is begun. */
  readonly under: UnderlayRecipe | undefined;
  /** False: no session that was idle will do. Default: true. */
  readonly mayAdopt?: boolean;
}

/**
 * The dial of a pending connection: by the main thread's plan, or as it was decided here, of which the main thread knows
 * nothing. The descriptor of its socket stands only in the relay memory, where the main thread finds it should this
 * worker die.
 */
export class RemoteDial implements Remote {
  /** What the kernel has said of the socket, epoll(7) bits. */
  events = 0;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  readonly #dial: Dial;
  /** It was decided by this worker. */
  readonly isDecided: boolean;
  readonly #recipe: UnderlayRecipe | undefined;
  /** What is opened once it is connected; null: nothing. */
  #under: RemoteStage | null;
  /** A session that was idle, in place of a connection that is made. */
  #adopted: AdoptedSession | null = null;
  #isConnected = false;
  #hasMoreTime: boolean;
  readonly #mayAdopt: boolean;

  constructor(
    owner: PendingOwner,
    slot: number,
    dial: Dial,
    { isDecided, under, mayAdopt = true }: RemoteDialOptions,
  ) {
    this.#mayAdopt = mayAdopt;
    this.#recipe = under;
    this.#under = under === undefined ? null : stagesOf(owner, slot, under);
    this.#hasMoreTime = under !== undefined;
    this.#owner = owner;
    this.#slot = slot;
    this.#dial = dial;
    this.isDecided = isDecided;
  }

  /** What kind of TLS lies over its socket; null: none. */
  get opens(): TlsRecipe["kind"] | null {
    return this.#recipe?.tls?.kind ?? null;
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
    const wire = this.#dial.wire?.();
    const recipe = this.#recipe;
    const { host } = this.#owner;
    const index = this.#slot * 2 + 1;
    if (recipe === undefined) return wire === undefined ? planned : host.begin(index, wire);
    const start: WireStart = wire ?? { ...planned, kind: recipe.tls?.kind ?? "plain", numbers: [] };
    const { onTicket, ...state } = this.#takeState();
    const message = host.begin(index, { ...start, ...state });
    const origin = { kind: start.kind, numbers: state.numbers };
    return { ...message, ...(onTicket && { onTicket }), ...this.#overSession(recipe.session, origin) };
  }

  #takeState(): StageState {
    const { origin } = this.#adopted?.session ?? {};
    if (origin !== undefined) return { numbers: origin.numbers, unread: null };
    return this.#under?.take() ?? { numbers: [], unread: null };
  }

  #overSession(
    recipe: SessionRecipe | undefined,
    origin: SessionOrigin,
  ): Pick<OpenMessage, "made" | "openStream"> {
    if (recipe === undefined) return {};
    const { sessions } = this.#owner;
    const adopted = this.#adopted;
    this.#adopted = null;
    const place = new SessionPlace(sessions, this.#slot, adopted);
    const openStream = (inner: Wire, target: Uint8Array): Wire =>
      new NodeStream(adopted?.session ?? sessions.newSession(recipe, inner, origin), target, place);
    return adopted === null ? { openStream } : { openStream, made: adopted.session.inner };
  }

  /** A session in place of one that was adopted: it is connected, and `settle` is to be called next. */
  takeSession(): NodeSession | null {
    const recipe = this.#recipe;
    if (recipe?.session === undefined) return null;
    const { host, sessions } = this.#owner;
    const index = this.#slot * 2 + 1;
    const kind = recipe.tls?.kind ?? "plain";
    const { onTicket, ...state } = this.#takeState();
    const message = host.begin(index, { ...state, kind, under: recipe });
    const inner = host.open(index, { ...message, ...(onTicket && { onTicket }) });
    return inner === null
      ? null
      : sessions.newSession(recipe.session, inner, { kind, numbers: state.numbers });
  }

  /** What is added to the time that it was given, in ms: once, where it is connected and something is still to be opened. */
  takeMoreMs(): number {
    const isGranted = this.#hasMoreTime && this.#isConnected;
    if (isGranted) this.#hasMoreTime = false;
    return isGranted ? HANDSHAKE_MS : 0;
  }

  /** What stands for an errno where it took too long. */
  get lateErrno(): number {
    return this.#isConnected ? UNDERLAY_FAILED : DIAL_TIMED_OUT;
  }

  /** Its socket is that of a session, which is ready, and watched. */
  get isAdopted(): boolean {
    return this.#adopted !== null;
  }

  /** For the client, once it is connected. */
  get replyBytes(): Uint8Array {
    return this.#dial.replyBytes;
  }

  /** -1: none is open. */
  get descriptor(): number {
    return int32At(this.#owner.table.descriptors, this.#slot * 2 + 1);
  }

  /** Opens the socket and begins to connect it. Not 0: an errno, or `UNDERLAY_FAILED`; `fail` is to be called. */
  start(): number {
    return this.#adopt() ? 0 : this.#connect();
  }

  /** True: an idle session is there, whose socket is ready as one that is connected. */
  #adopt(): boolean {
    const recipe = this.#recipe;
    if (recipe?.session?.reuses !== true || !this.#mayAdopt) return false;
    const dialAgain = (dial: Dial): RemoteDial =>
      new RemoteDial(this.#owner, this.#slot, dial, { isDecided: true, under: recipe, mayAdopt: false });
    this.#adopted = AdoptedSession.take(this.#owner, this.#slot, recipe, this.#dial, dialAgain);
    if (this.#adopted === null) return false;
    this.#under = null;
    this.#hasMoreTime = false;
    this.events = WRITABLE; // as far as is known
    return true;
  }

  #connect(): number {
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
    if (this.#under !== null) calls.noDelay(fd); // several small pieces, one behind the other
    if (this.#under?.open(fd) === false) return UNDERLAY_FAILED;
    calls.address.set(address);
    const error = calls.connect(fd, address.length);
    return error === EINPROGRESS ? 0 : error;
  }

  /** Null: there is no answer yet. 0: connected, and all is open that lies below its wire. Else an errno, or `UNDERLAY_FAILED`. */
  takeResult(): number | null {
    if (this.events === 0) return null;
    const hasFailed = !this.#isConnected && (this.events & (FAULT | HANGUP)) !== 0;
    if (hasFailed && this.#adopted !== null) return UNDERLAY_FAILED;
    const error = hasFailed ? this.#owner.calls.takeError(this.descriptor) : 0;
    if (hasFailed && error === 0 && !this.#mayAdopt) return this.#wait(); // it was of the socket of the session before
    if (hasFailed) return error;
    this.#isConnected = true;
    return this.#under === null ? 0 : this.#under.advance();
  }

  #wait(): null {
    this.events = 0;
    return null;
  }

  /** It is connected. False: it was decided by rules that are no longer in force, and is to be given up. */
  commit(): boolean {
    return !this.isDecided || this.#owner.decider.slots.commit(this.#slot);
  }

  /** From now on the connection is relayed. */
  succeed(): void {
    this.settle();
    if (!this.isDecided) this.#owner.host.reportLazily(this.#slot, DIALLED);
  }

  /** What was opened is another's to free. */
  settle(): void {
    this.#under?.settle();
  }

  /** Of a connection that ends before it is relayed: what the loop does not free. */
  drop(): void {
    this.#under?.free();
    this.#adopted?.drop();
    this.#adopted = null;
  }

  fail(): void {
    this.hangUp();
    if (this.isDecided) this.#owner.decider.slots.giveUp(this.#slot);
  }

  /** Closes the socket. */
  hangUp(): void {
    this.drop();
    const { calls, host, table } = this.#owner;
    const fd = this.descriptor;
    // First: the name of another socket with this number must not be asked for.
    Atomics.store(table.descriptors, this.#slot * 2 + 1, -1);
    host.atSeam?.("closing");
    if (fd >= 0) calls.close(fd);
  }
}

function stagesOf(owner: PendingOwner, slot: number, { tls, upgrade }: UnderlayRecipe): RemoteStage {
  const secured = securedBy(owner, slot, tls);
  return upgrade === null ? secured : new RemoteUpgrade(secured, upgrade);
}

function securedBy(owner: PendingOwner, slot: number, tls: UnderlayRecipe["tls"]): RemoteStage {
  if (tls === null) return new RemotePlain(owner);
  return tls.kind === "tls" ? new RemoteLibraryTls(owner, slot, tls) : new RemoteBrowserTls(owner, tls);
}
