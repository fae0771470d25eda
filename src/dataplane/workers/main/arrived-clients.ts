/** Clients that workers pass to the main thread: each goes to its listener, as far as its worker has come with it. */
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Endpoint } from "#core/session.ts";
import { NOT_ANSWERED, type OffloadOptions } from "#net/listen/accept-offload.ts";
import {
  repliedBytesOf,
  requestSlotOf,
  SESSION_BYTES,
  switchedOf,
} from "#dataplane/workers/shared/slot-tag.ts";
import { LEFT, REQUESTED, TLS_ACCEPTED } from "#dataplane/workers/shared/opcodes.ts";
import { int32At } from "#lib/at.ts";
import type { ConnectionEnds } from "./left-connection.ts";
import { LeftRecords } from "./left-records.ts";
import { StreamClient } from "./stream-client.ts";
import { nameOf, type Listener } from "./offloaded-listener.ts";
import { socketOfSlot } from "./slot-socket.ts";
import { socketOf } from "./socket-of.ts";
import { takeHandshake, TlsAcceptedSocket } from "./tls-accepted.ts";
import { WorkerClient, type WorkerClientEnv } from "./worker-connection.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** A fault of its owner costs only this client. */
function passOn(options: OffloadOptions, client: AcceptedConnection): void {
  try {
    options.onAccepted(client);
  } catch (error) {
    client.reset();
    throw error;
  }
}

export class ArrivedClients {
  readonly #env: WorkerClientEnv;

  constructor(env: WorkerClientEnv) {
    this.#env = env;
  }

  /** On that event of the slot. Null: its listener has closed. */
  onEvent(thread: WorkerHandle, slot: number, kind: number, listener: Listener | null): void {
    if (kind === TLS_ACCEPTED) this.#onTlsAccepted(thread, slot, listener);
    else if (kind === LEFT) this.#onLeft(thread, slot, listener);
    else if (kind === REQUESTED && listener !== null) this.#onRequested(thread, slot, listener);
    else this.#onHandedOver(thread, slot, listener);
  }

  #onRequested(thread: WorkerHandle, slot: number, { options }: Listener): void {
    const client = WorkerClient.asking(thread, slot, options, this.#env);
    thread.track(slot, client);
    passOn(options, client);
  }

  #onHandedOver(thread: WorkerHandle, slot: number, listener: Listener | null): void {
    const word = int32At(thread.accepts.tags, slot);
    thread.track(slot, null);
    const socket = socketOfSlot(thread, slot, 0, this.#env.calls);
    if (listener === null) socket.destroy();
    else
      listener.options.onSocket(socket, { repliedBytes: repliedBytesOf(word), switched: switchedOf(word) });
  }

  /** In the session of a client that the thread keeps. */
  onStream(thread: WorkerHandle, slot: number): void {
    const { accepts } = thread;
    const request = accepts.requests.request(requestSlotOf(int32At(accepts.tags, slot)));
    const session = thread.ownerOf(request.readUInt32BE());
    if (!(session instanceof WorkerClient)) throw new TypeError("a stream without a session");
    const stream = new StreamClient(session, slot, request.subarray(SESSION_BYTES), this.#env);
    thread.track(slot, stream);
    try {
      if (!session.takeStream(stream)) stream.reset();
    } catch (error) {
      stream.reset(); // a fault costs only this stream
      throw error;
    }
  }

  #onTlsAccepted(thread: WorkerHandle, slot: number, listener: Listener | null): void {
    const { calls, tlsLibrary } = this.#env;
    const source = this.#sourceOf(thread, slot);
    const tlsAccepted = takeHandshake(thread, slot, tlsLibrary);
    const { fd, ssl } = tlsAccepted;
    if (fd >= 0 && ssl === 0n) {
      const socket = socketOf(fd, calls);
      if (listener === null) socket?.destroy();
      else if (socket !== null) listener.options.onSocket(socket, NOT_ANSWERED);
      return;
    }
    const client = new TlsAcceptedSocket(tlsAccepted, this.#endsOf(fd, source, listener), this.#env);
    if (listener === null) client.destroy();
    else passOn(listener.options, client);
  }

  #onLeft(thread: WorkerHandle, slot: number, listener: Listener | null): void {
    const { calls } = this.#env;
    const source = this.#sourceOf(thread, slot);
    const left = thread.takeLeft(slot * 2);
    const { descriptors } = thread.table;
    const [fd, far] = [int32At(descriptors, slot * 2), int32At(descriptors, slot * 2 + 1)];
    descriptors[slot * 2] = descriptors[slot * 2 + 1] = -1;
    thread.release(slot);
    if (left?.records) return this.#onLeftRecords(fd, left.records, source, listener);
    const [client, dest] = [socketOf(fd, calls), socketOf(far, calls)];
    if (left === null || client === null || dest === null || listener === null) {
      client?.destroy();
      dest?.destroy();
      return;
    }
    const [toClient, toDest] = [Buffer.from(left.toClient), Buffer.from(left.toDest)];
    listener.options.onSocket(client, {
      ...NOT_ANSWERED,
      left: { dest, toClient, toDest, why: left.why },
    });
  }

  #onLeftRecords(fd: number, records: Uint8Array, source: Endpoint, listener: Listener | null): void {
    const client = new LeftRecords(fd, records, this.#endsOf(fd, source, listener), this.#env.calls);
    if (listener === null) client.destroy();
    else passOn(listener.options, client);
  }

  #sourceOf({ accepts }: WorkerHandle, slot: number): Endpoint {
    return this.#env.sockaddrs.source(accepts.source(slot));
  }

  /** Of a client with that descriptor, -1 where none is left. */
  #endsOf(fd: number, source: Endpoint, listener: Listener | null): ConnectionEnds {
    if (listener === null) return { source, local: source };
    if (listener.isBound || fd < 0) return { source, local: listener.local };
    const { calls, sockaddrs } = this.#env;
    return { source, local: nameOf(fd, calls, sockaddrs).local };
  }
}
