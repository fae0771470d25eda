/** The accepting side of QUIC behind one UDP socket: which connection a datagram is for, and who may begin one. */
import type { Endpoint } from "#core/endpoint.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { byteAt } from "#lib/at.ts";
import { PerSecond } from "#lib/per-second.ts";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import type { ConnectionOptions, ServerStart } from "#transport/quic/connection-options.ts";
import { QuicFault } from "#transport/quic/fault.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import {
  CID_BYTES,
  hasToken,
  INITIAL,
  isShortHeader,
  MIN_INITIAL_BYTES,
} from "#transport/quic/wire/header.ts";
import { readHeader, VERSION_1 } from "#transport/quic/wire/header.ts";
import type { PacketHeader } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { ClientTable, type NewClient } from "./client-table.ts";
import { QuicServerConnection, type QuicServerEvents, type ServerConnectionHost } from "./connection.ts";
import type { InitialSieve } from "./initial-sieve.ts";
import type { ServerSecrets } from "./secrets.ts";
import { encodeReset, encodeRetry, encodeVersions } from "./stateless-answers.ts";

export interface QuicServerOptions extends Omit<ConnectionOptions, "congestion"> {
  /** Of each connection, and anew where it moves to another host. */
  readonly makeCongestion: () => Congestion;
  /** Null: datagrams go as they are. */
  readonly filter: PacketFilter | null;
  /** What connections say when the socket closes. */
  readonly closeCode: number;
  /**
   * A client has finished its handshake; where TLS takes 0-RTT, it may only have begun it (`isConnected`). The answer takes
   * what it sends.
   */
  readonly onConnection: (connection: QuicServerConnection) => QuicServerEvents;
}

/** The least that a client's first destination has (RFC 9000 §7.2). */
const LEAST_FIRST_ID_BYTES = 8;
/**
 * The same behind so many first packets that are not authentic, a second and at once: making keys for each costs more than a
 * Retry.
 */
const FORGED = [64, 8] as const;
/** Resets; beyond it nothing is answered. */
const RESETS = [100, 20] as const;
/** The same of Retries and of versions: in a flood most of the time is left for the clients that are known. */
const ANSWERS = [10_000, 64] as const;

export class QuicEndpoint implements ServerConnectionHost {
  readonly #socket: DatagramListener;
  readonly #secrets: ServerSecrets;
  readonly #sieve: InitialSieve;
  readonly #options: QuicServerOptions;
  readonly #clients = new ClientTable();
  readonly #reader = new WireReader();
  readonly sendRun?: (datagrams: Uint8Array, size: number, to: Endpoint, isMarked: boolean) => void;
  readonly #sendSealed = (datagram: Uint8Array, to: Endpoint): void => this.#socket.send(datagram, to);
  readonly #resets = new PerSecond(...RESETS);
  readonly #answers = new PerSecond(...ANSWERS);
  /** First packets that were not authentic. */
  readonly #forged = new PerSecond(...FORGED);
  /** Something was not answered since the last look: `refuses` is to look at all that comes. */
  #isFlooded = false;

  constructor(
    socket: DatagramListener,
    secrets: ServerSecrets,
    sieve: InitialSieve,
    options: QuicServerOptions,
  ) {
    this.#socket = socket;
    this.#secrets = secrets;
    this.#sieve = sieve;
    this.#options = options;
    if (options.filter === null)
      this.sendRun = (datagrams, size, to, isMarked) => socket.sendRun(datagrams, size, to, isMarked);
  }

  get local(): Endpoint {
    return this.#socket.local;
  }

  /** Connections that are open, or not yet forgotten. */
  get size(): number {
    return this.#clients.size;
  }

  /** Ids by which they are found. */
  get ids(): number {
    return this.#clients.ids;
  }

  /**
   * A datagram of the socket, lent until the call returns; `ecn`: as of `Datagram`. False: it is for no connection here, and `accepts` is false;
   * else the client is answered, or begins a connection.
   */
  take(payload: Uint8Array, from: Endpoint, ecn: number, accepts: boolean): boolean {
    const { filter } = this.#options;
    const datagram = filter === null ? payload : filter.open(payload, from);
    if (datagram === null || datagram.length < 1 + CID_BYTES) return false;
    const known = this.#clients.find(datagram);
    if (known !== null) known.receive(datagram, from, ecn);
    else if (accepts) this.#answerUnknown(datagram, from);
    return known !== null || accepts;
  }

  /**
   * In a flood: is this datagram of the socket one that would not be answered? Those of connections that are known are not,
   * nor first packets with a token. With a filter nothing can be told before it has opened them.
   */
  refuses(datagram: Uint8Array): boolean {
    if (!this.#isFlooded || hasToken(datagram) || this.mayKnow(datagram)) return false;
    const nowMs = performance.now();
    const [isResetFull, isAnswerFull] = [this.#resets.isFull(nowMs), this.#answers.isFull(nowMs)];
    this.#isFlooded = isResetFull || isAnswerFull;
    if (isShortHeader(byteAt(datagram, 0))) return isResetFull;
    if (isAnswerFull) this.#sieve.count(nowMs);
    return isAnswerFull;
  }

  /** Is this datagram of the socket perhaps of a connection here? */
  mayKnow(datagram: Uint8Array): boolean {
    if (this.#options.filter !== null) return true;
    return datagram.length > CID_BYTES && this.#clients.find(datagram) !== null;
  }

  /** A datagram that is for no connection. */
  #answerUnknown(datagram: Uint8Array, from: Endpoint): void {
    if (isShortHeader(byteAt(datagram, 0))) return this.#reset(datagram, from);
    const header = this.#headerOf(datagram);
    if (header === null || datagram.length < MIN_INITIAL_BYTES) return;
    const { version, type, destination, source } = header;
    if (version === 0) return;
    if (version !== VERSION_1) return this.#answer(() => encodeVersions(destination, source, version), from);
    if (type !== INITIAL || destination.length < LEAST_FIRST_ID_BYTES) return;
    this.#begin(header, datagram, from);
  }

  #headerOf(datagram: Uint8Array): PacketHeader | null {
    try {
      return readHeader(this.#reader.reset(datagram));
    } catch (error) {
      if (error instanceof QuicFault) return null; // not protected: anybody can have written it
      throw error;
    }
  }

  #begin({ destination, source, token }: PacketHeader, datagram: Uint8Array, from: Endpoint): void {
    const nowMs = performance.now();
    const original = token.length === 0 ? null : this.#secrets.openToken(token, from, destination, nowMs);
    if (token.length === 0 && this.#options.filter === null) this.#sieve.count(nowMs);
    if (original === null && this.#mustShowAddress(nowMs))
      return this.#answer(() => this.#retry({ client: source, original: destination }, from, nowMs), from);
    const initial = new Uint8Array(destination);
    const made = this.#open({
      from,
      original: original ?? initial,
      client: new Uint8Array(source),
      isValidated: original !== null,
      retrySource: original === null ? null : initial,
      resetTokenOf: (id) => this.#secrets.resetTokenOf(id),
      makeId: this.#secrets.makeId,
    });
    if (made === null) return;
    this.#enter(made, { initial, from, isUnvalidated: original === null });
    made.receive(datagram, from, 0);
    if (made.connection.isHeard) return;
    this.#forged.add();
    made.discard();
  }

  /** The closure is kept for long, and must not keep more than it needs. */
  #enter(made: QuicServerConnection, client: NewClient): void {
    const { closeCode } = this.#options;
    this.#clients.enter(made, client, () => made.connection.close(closeCode, ""));
  }

  #mustShowAddress(nowMs: number): boolean {
    return this.#clients.isCrowded || this.#sieve.isOn || this.#forged.isFull(nowMs);
  }

  /** Null: the library of TLS has no memory for one more. */
  #open(start: ServerStart & { readonly from: Endpoint }): QuicServerConnection | null {
    const { makeCongestion, ...options } = this.#options;
    try {
      return new QuicServerConnection(this, options, start, makeCongestion);
    } catch {
      return null;
    }
  }

  #retry(ids: { client: Uint8Array; original: Uint8Array }, from: Endpoint, nowMs: number): Buffer {
    const source = this.#secrets.makeId();
    return encodeRetry({ ...ids, source }, this.#secrets.sealToken(from, ids.original, source, nowMs));
  }

  /** Keeps nothing of the client. */
  #answer(encode: () => Buffer, to: Endpoint): void {
    if (this.#answers.isFull(performance.now())) return void (this.#isFlooded = true);
    this.#answers.add();
    this.send(encode(), to);
  }

  /** For the packet of a connection that we have lost; see RFC 9000 §10.3. */
  #reset(datagram: Uint8Array, to: Endpoint): void {
    if (this.#resets.isFull(performance.now())) return void (this.#isFlooded = true);
    this.#resets.add();
    const token = this.#secrets.resetTokenOf(datagram.subarray(1, 1 + CID_BYTES));
    const packet = encodeReset(token, datagram.length);
    if (packet !== null) this.send(packet, to);
  }

  send(datagram: Uint8Array, to: Endpoint, isMarked = false): void {
    const { filter } = this.#options;
    if (filter === null) this.#socket.send(datagram, to, isMarked);
    else filter.seal(datagram, to, this.#sendSealed);
  }

  onId(connection: QuicServerConnection, id: Uint8Array, isGiven: boolean): void {
    if (isGiven) this.#clients.addId(connection, id);
    else this.#clients.removeId(connection, id);
  }

  onConnected(connection: QuicServerConnection): void {
    this.#clients.validate(connection);
  }

  eventsOf(connection: QuicServerConnection): QuicServerEvents {
    return this.#options.onConnection(connection);
  }

  onGrown(connection: QuicServerConnection, bytes: number): void {
    this.#clients.grow(connection, bytes);
  }

  onSettled(connection: QuicServerConnection): void {
    this.#clients.settle(connection);
  }

  onForgotten(connection: QuicServerConnection): void {
    this.#clients.forget(connection);
  }

  /** Calls `on` as soon as no connection is left, at once where there is none. */
  whenEmpty(on: () => void): void {
    this.#clients.whenEmpty(on);
  }

  /** Says the end to all clients: the socket closes. */
  close(): void {
    for (const { connection } of this.#clients.all()) connection.close(this.#options.closeCode, "");
    for (const client of this.#clients.all()) client.forget();
  }
}
