import type { Layer } from "#core/wire-state.ts";
import type { MuxRecipe } from "#core/wire-recipe.ts";
import { beginWire } from "#protocols/begin-wire.ts";
import { MUX_DESTINATION } from "#transport/mux/preface.ts";
import { type Dial, UNDERLAY_FAILED } from "#dataplane/workers/shared/request-memory.ts";
import { DIALLED } from "#dataplane/workers/shared/opcodes.ts";
import { NO_MESSAGE, type WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import { NodeMuxStream } from "#dataplane/workers/wire/node-mux-stream.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import { MuxConnection } from "./mux-connection.ts";
import type { MuxPool, SharedConnection } from "./mux-pool.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { RemoteDial } from "./remote-dial.ts";
import type { Remote } from "./remote.ts";
import type { NodeMuxSession } from "#dataplane/workers/wire/node-mux-session.ts";

/** What the dial of a shared connection, and the handshake of it, may take: it ends by itself before. */
const MOST_OPENING_MS = 20_000;
const NOTHING = new Uint8Array(0);

/** The dial of a pending connection that is to be a stream of a shared one. */
export class MuxDial implements Remote {
  events = 0;
  readonly isDecided: boolean;
  readonly isAdopted = true;
  readonly descriptor = -1;
  readonly lateErrno = UNDERLAY_FAILED;
  readonly timeoutMs: number;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  readonly #dial: Dial;
  readonly #recipe: MuxRecipe;
  /** Null: it has the stream, or has come to nothing. */
  #connection: SharedConnection | null = null;

  constructor(owner: PendingOwner, slot: number, dial: Dial, recipe: MuxRecipe, isDecided: boolean) {
    this.#owner = owner;
    this.#slot = slot;
    this.#dial = dial;
    this.#recipe = recipe;
    this.isDecided = isDecided;
    this.timeoutMs = dial.timeoutMs + MOST_OPENING_MS;
  }

  get isFirstOfMany(): boolean {
    return this.#dial.isFirstOfMany === true;
  }

  get replyBytes(): Uint8Array {
    return this.#dial.replyBytes;
  }

  start(): number {
    const { host, sessions } = this.#owner;
    const pool = sessions.sharedOf(this.#recipe);
    this.#connection = pool.choose(() => this.#dialShared(pool));
    if (this.#connection === null) return UNDERLAY_FAILED;
    this.#connection.await(this.#slot);
    if (this.#connection.session !== null) host.wake(this.#slot * 2 + 1);
    return 0;
  }

  /** By this dial, a connection for others, too. Null: it cannot be begun. */
  #dialShared(pool: MuxPool): SharedConnection | null {
    const owner = this.#owner;
    const recipe = this.#recipe;
    const slot = owner.takeSlot();
    if (slot < 0) return null;
    const { base } = recipe;
    const wire = () => beginWire(base, MUX_DESTINATION, owner.decider.nowMs);
    const options = { isDecided: false, under: base.under };
    const remote = new RemoteDial(owner, slot, { ...this.#dial, wire }, options);
    const one = new MuxConnection(owner, remote, slot, recipe, pool.leave);
    if (!one.start()) return null;
    pool.enter(one);
    return one;
  }

  /** Null: the connection is still to be opened. */
  takeResult(): number | null {
    const connection = this.#connection;
    if (connection === null || connection.isOver) return UNDERLAY_FAILED;
    const { session } = connection;
    if (session === null) return null;
    return session.isUsable ? 0 : UNDERLAY_FAILED; // it may have ended its last stream a moment ago
  }

  takeMoreMs(): number {
    return 0;
  }

  commit(): boolean {
    return !this.isDecided || this.#owner.decider.slots.commit(this.#slot);
  }

  begin(planned: WireMessage): OpenMessage {
    const { layers = [] } = this.#dial.wire?.() ?? planned;
    const session = this.#connection?.session ?? null;
    if (session === null) throw new TypeError("a stream of nothing");
    const [request, over] = requestOf(session, layers);
    const index = this.#slot * 2 + 1;
    const stream = new NodeMuxStream(session, request, () => this.#owner.host.wake(index));
    this.drop();
    return { ...NO_MESSAGE, made: stream, layers: over };
  }

  succeed(): void {
    if (!this.isDecided) this.#owner.host.reportLazily(this.#slot, DIALLED);
  }

  fail(): void {
    this.drop();
    if (this.isDecided) this.#owner.decider.slots.giveUp(this.#slot);
  }

  drop(): void {
    this.#connection?.settle(this.#slot);
    this.#connection = null;
  }
}

/** What the stream says first, and what lies over it. */
function requestOf(
  { framing }: NodeMuxSession,
  layers: readonly Layer[],
): readonly [request: Uint8Array, over: readonly Layer[]] {
  if (!framing.hasRequests) return [NOTHING, layers];
  const [layer, ...over] = layers;
  if (layer?.kind !== "stream") throw new TypeError("a stream that leads nowhere");
  return [layer.target, over];
}
