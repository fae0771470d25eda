import {
  FAULT_NUMBER,
  HANDSHAKE_BEGUN,
  HANDSHAKE_DONE,
  HANDSHAKE_FAILED,
  HANDSHAKE_LATE,
  STAGE_NUMBER,
} from "#dataplane/workers/shared/tls-stage.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import { BLOCKED_BY_WRITE } from "#platform/linux/ssl.ts";
import { EAGAIN, FAULT, HANGUP, PEER_ENDED, READABLE } from "#platform/linux/relay-calls.ts";
import { WAITS } from "./task.ts";
import type { Outcome } from "./task.ts";
import type { Side } from "#dataplane/workers/shared/sides.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { PendingTask } from "./pending-task.ts";
import { AcceptedTask } from "./accepted-task.ts";
import { TlsBytes } from "./tls-bytes.ts";
import { tag } from "#dataplane/workers/shared/slot-tag.ts";
import { PLAIN, WIRE_NUMBERS, TLS } from "#dataplane/workers/shared/wire-spec.ts";
import { TLS_ACCEPTED } from "#dataplane/workers/shared/opcodes.ts";
import { int32At } from "#lib/at.ts";

/** What the library's object takes in the middle of a handshake, measured with RSA and P-256. */
export const OBJECT_BYTES = 60 * 1024;

const EVENTS = READABLE | PEER_ENDED | HANGUP | FAULT;
/** What is read of one whose handshake has failed, so that the system does not answer with a reset where there was an end. */
const LAST_BYTES = 64 * 1024;

/**
 * A client of a TLS listener from accept to the end of its handshake. Then it is the main thread's, with its descriptor
 * and the library's object: this thread has nothing of it any more but the slot.
 */
export class TlsHandshake extends AcceptedTask implements PendingTask {
  readonly #showsFirst: boolean;
  /** 0: there is none yet. A client that only connects costs none. */
  #object = 0n;
  /** The handshake waits for room in the socket. */
  #blocked = false;
  /** The handshake is; the main thread has not been told yet. */
  #isDone = false;
  /** What the kernel has said of the client. */
  #events = 0;

  /** `showsFirst`: once it is done, the main thread is shown what the client says. */
  constructor(
    acceptor: PendingOwner,
    client: Pick<RequestingTask, "slot" | "listener" | "fd">,
    showsFirst: boolean,
  ) {
    super(acceptor, client);
    this.#showsFirst = showsFirst;
  }

  begin(): boolean {
    return false; // it speaks first
  }

  onEvents(_side: Side, events: number): boolean {
    this.#events |= events;
    return this.#blocked || (events & EVENTS) !== 0;
  }

  run(): Outcome {
    if (this.#isDone) return WAITS;
    const ssl = this.acceptor.host.ssl();
    if (ssl === null || !this.#hasObject(ssl)) this.handOver();
    else this.#advance(ssl);
    return WAITS;
  }

  #hasObject(ssl: Ssl): boolean {
    if (this.#object !== 0n) return true;
    const context = Atomics.load(this.acceptor.shared.contexts, this.listener);
    if (context === 0n) return false;
    this.acceptor.host.atSeam?.("context");
    this.#object = ssl.accept(context, this.fd, false);
    if (this.#object === 0n) return false;
    const { owned, wireNumbers } = this.acceptor.table;
    wireNumbers[this.slot * 2 * WIRE_NUMBERS] = Number(this.#object);
    owned[this.slot * 2] = TLS;
    this.acceptor.grew(this, OBJECT_BYTES);
    return true;
  }

  #advance(ssl: Ssl): void {
    const answer = ssl.handshake(this.#object);
    this.#blocked = answer === BLOCKED_BY_WRITE;
    if (this.#blocked || answer === EAGAIN) return;
    if (answer !== 1) return this.#fail(HANDSHAKE_FAILED, ssl.fault);
    this.#isDone = true;
    if (!this.#showsFirst) return this.acceptor.tlsAccepted.add(this);
    this.acceptor.showFirst(this, new TlsBytes(this.acceptor, this, ssl, this.#object), this.#events);
  }

  handOver(): void {
    this.#hand(this.#isDone ? HANDSHAKE_DONE : HANDSHAKE_BEGUN, 0);
  }

  #hand(stage: number, fault: number): void {
    const { calls, host, shared, table } = this.acceptor;
    const at = this.slot * 2 * WIRE_NUMBERS;
    if (this.#object === 0n) table.wireNumbers[at] = 0;
    table.wireNumbers[at + STAGE_NUMBER] = stage;
    table.wireNumbers[at + FAULT_NUMBER] = fault;
    shared.tags[this.slot] = tag(this.listener, false, 0);
    // The next owner of the descriptor watches it with another epoll.
    if (int32At(table.descriptors, this.slot * 2) >= 0) calls.unwatch(host.epoll, this.fd);
    this.#leave();
    host.report(this.slot, TLS_ACCEPTED);
  }

  #fail(stage: number, fault: number): void {
    const { calls } = this.acceptor;
    this.#free();
    calls.receive(this.fd, LAST_BYTES);
    this.#forgetDescriptor();
    this.acceptor.host.atSeam?.("closing");
    calls.close(this.fd);
    this.#hand(stage, fault);
  }

  timedOut(): void {
    this.#fail(HANDSHAKE_LATE, 0);
  }

  /** The main thread gets no event. */
  end(isFault: boolean): void {
    this.#free();
    this.#forgetDescriptor();
    this.acceptor.calls.discard(this.fd, isFault);
    this.#leave();
    this.acceptor.freeSlot(this.slot);
  }

  drop(): void {
    this.#free();
    this.acceptor.tlsAccepted.leave(this);
    this.acceptor.onGone(this);
  }

  /** First in the table: should this worker die, a number that may be another's by then is not closed. */
  #forgetDescriptor(): void {
    this.acceptor.table.descriptors[this.slot * 2] = -1;
  }

  #free(): void {
    if (this.#object === 0n) return;
    this.acceptor.table.owned[this.slot * 2] = PLAIN;
    this.acceptor.host.atSeam?.("freeing");
    this.acceptor.host.ssl()?.free(this.#object);
    this.#object = 0n;
  }

  #leave(): void {
    this.acceptor.host.put(this.slot, null);
    this.acceptor.tlsAccepted.leave(this);
    this.acceptor.onGone(this);
  }
}
