/** The clients of one UDP socket: by their ids, and which of them have not shown who they are. */
import { randomBytes } from "node:crypto";
import type { Endpoint } from "#core/endpoint.ts";
import { byteAt } from "#lib/at.ts";
import { type PendingEntry, PendingLimiter } from "#net/listen/pending-limiter.ts";
import { sourceKey } from "#net/listen/unauthenticated-clients.ts";
import { CID_BYTES, isShortHeader } from "#transport/quic/wire/header.ts";
import type { QuicServerConnection } from "./connection.ts";
import { IdTable } from "./id-table.ts";

/** Clients that have not shown who they are. Beyond it the oldest are closed, first of a source that has more than half. */
const UNSETTLED = { count: 1024, bytes: 64 * 1024 * 1024 };
/** What one weighs: its packet spaces, keys, and the object of the TLS library. */
const UNSETTLED_BYTES = 64 * 1024;
/** With so many handshakes of addresses that may be invented, others have to show theirs first (Retry). */
const MOST_UNVALIDATED = 64;

interface Row {
  /** The destination of its first packets, which is not one of its ids. */
  readonly initial: Uint8Array;
  /** Among those that have not shown who they are; null: it has. */
  entry: PendingEntry | null;
  /** Its address may be invented. */
  isUnvalidated: boolean;
}

export interface NewClient extends Pick<Row, "initial" | "isUnvalidated"> {
  readonly from: Endpoint;
}

export class ClientTable {
  readonly #ids = new IdTable<QuicServerConnection>(randomBytes(8));
  readonly #rows = new Map<QuicServerConnection, Row>();
  readonly #unsettled = new PendingLimiter(UNSETTLED);
  #unvalidated = 0;
  #onEmpty: () => void = () => {};

  /** Connections that are open, or not yet forgotten. */
  get size(): number {
    return this.#rows.size;
  }

  /** Ids by which they are found. */
  get ids(): number {
    return this.#ids.size;
  }

  /** Further clients have to show their addresses first. */
  get isCrowded(): boolean {
    return this.#unvalidated >= MOST_UNVALIDATED;
  }

  all(): Iterable<QuicServerConnection> {
    return this.#rows.keys();
  }

  /** The client whose id a datagram has; null: there is none. */
  find(datagram: Uint8Array): QuicServerConnection | null {
    if (isShortHeader(byteAt(datagram, 0))) return this.#ids.find(datagram, 1, CID_BYTES);
    const size = datagram.length > 5 ? byteAt(datagram, 5) : 0;
    return 6 + size <= datagram.length ? this.#ids.find(datagram, 6, size) : null;
  }

  /** `close` ends it where too many have not shown who they are. */
  enter(client: QuicServerConnection, { initial, isUnvalidated, from }: NewClient, close: () => void): void {
    this.#ids.add(initial, client);
    const entry = this.#unsettled.enter(sourceKey(from.ip), UNSETTLED_BYTES, close);
    this.#rows.set(client, { initial, entry, isUnvalidated });
    if (isUnvalidated) this.#unvalidated++;
  }

  addId(client: QuicServerConnection, id: Uint8Array): void {
    this.#ids.add(id, client);
  }

  removeId(client: QuicServerConnection, id: Uint8Array): void {
    this.#ids.remove(id, client);
  }

  /** Its address is not invented. */
  validate(client: QuicServerConnection): void {
    const row = this.#rows.get(client);
    if (row === undefined || !row.isUnvalidated) return;
    row.isUnvalidated = false;
    this.#unvalidated--;
  }

  /** We hold so many bytes more for it; negative: fewer. */
  grow(client: QuicServerConnection, bytes: number): void {
    const entry = this.#rows.get(client)?.entry ?? null;
    if (entry !== null) this.#unsettled.grow(entry, bytes);
  }

  /** It has shown who it is. */
  settle(client: QuicServerConnection): void {
    const row = this.#rows.get(client);
    if (row === undefined || row.entry === null) return;
    this.#unsettled.leave(row.entry);
    row.entry = null;
  }

  forget(client: QuicServerConnection): void {
    const row = this.#rows.get(client);
    if (row === undefined) return;
    this.validate(client);
    this.settle(client);
    this.#ids.remove(row.initial, client);
    this.#rows.delete(client);
    if (this.#rows.size === 0) this.#onEmpty();
  }

  /** Calls `on` as soon as no client is left, at once where there is none. */
  whenEmpty(on: () => void): void {
    this.#onEmpty = on;
    if (this.#rows.size === 0) on();
  }
}
