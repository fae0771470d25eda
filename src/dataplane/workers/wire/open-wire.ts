import type { ReturnedRemainder } from "#dataplane/workers/shared/worker-data.ts";
import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { RealityRules } from "#core/reality-rules.ts";
import type { FramedLayer, Layer, SealedLayer, StreamLayer, WireRemainder } from "#core/wire-state.ts";
import { openSsl, type Ssl } from "#platform/linux/ssl.ts";
import { cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { FramedWire, type ReturningWire } from "./framed.ts";
import { PlainWire } from "./plain.ts";
import {
  ENCRYPTED,
  LAYER_CONTEXTS,
  LAYER_FORMS,
  LEFT_OPEN,
  NO_MESSAGE,
  PLAIN,
  QUIC,
  RECORDS,
  SEALED,
  VMESS,
  WIRE_NUMBERS,
  type WireMessage,
} from "#dataplane/workers/shared/wire-spec.ts";
import { QuicWire, type QuicStreams } from "./quic.ts";
import { OpeningWire } from "./opening-wire.ts";
import { openSealed } from "./open-sealed.ts";
import { SocketBelow, WireBelow } from "./sealed-below.ts";
import { type Wire } from "./wire.ts";
import { MaskKeys } from "./mask-keys.ts";
import { BrowserTlsTable } from "./browser-tls.ts";
import { NodeTlsTable } from "./node-tls.ts";
import { CipherMemory } from "./cipher-memory.ts";
import { ReadAheadWire } from "./read-ahead-wire.ts";
import { RecordWire, type RecordStart } from "./record-wire.ts";
import { IN_NUMBERS, POSTED, RETURNED, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { readShortLayer } from "#dataplane/workers/shared/short-layer.ts";
import { TlsWire } from "./tls.ts";
import { TlsRecordSource } from "./tls-records.ts";
import { type LeavableWire, VisionWire } from "./vision-wire.ts";
import { WebSocketWire } from "./websocket-wire.ts";
import { int32At, float64At } from "#lib/at.ts";

/** What a wire is made of in its thread. */
export interface OpenMessage extends WireMessage {
  /** As `RecordStart` has it. */
  readonly onTicket?: RecordStart["onTicket"];
  /** What the thread has already, in place of a wire that is made. */
  readonly made?: Wire;
  /** Over a session: how its stream is opened that leads there, in SOCKS form. */
  readonly openStream?: (inner: Wire, target: Uint8Array) => Wire;
}

const canReturn = (wire: Wire): wire is ReturningWire => "release" in wire;
const canLeave = (wire: Wire): wire is LeavableWire => "leaveReading" in wire;
const isFramed = ({ kind }: Layer): boolean => kind === "framed";
const mayLeave = (layer: Layer): boolean => layer.kind === "vision" && layer.mayLeave;

/** Makes the wires of one worker from what the main thread wrote of them. */
export class Wires {
  readonly #table: RelayMemory;
  readonly #messages: MessagePort;
  readonly #buffer: Uint8Array;
  readonly #streams: QuicStreams | null;
  /** Opened with the first port that needs it; null where it cannot be had. */
  #ssl: Ssl | null | undefined;
  #ciphers: CipherMemory | null | undefined;
  /** Of the thread. */
  readonly nodes = new NodeTlsTable();
  readonly browsers = new BrowserTlsTable();
  readonly #maskKeys = new MaskKeys();
  #recordSource: TlsRecordSource | null | undefined;
  /** Of the thread; null: there is none. */
  readonly #records = (): TlsRecordSource | null => {
    if (this.#recordSource === undefined) {
      const memory = this.#cipherMemory();
      this.#recordSource = memory === null ? null : TlsRecordSource.open(memory);
    }
    return this.#recordSource;
  };

  /** `buffer` is the thread's; `streams` are those of connections that it has. */
  constructor(
    table: RelayMemory,
    messages: MessagePort,
    buffer: Uint8Array,
    streams: QuicStreams | null = null,
  ) {
    this.#table = table;
    this.#messages = messages;
    this.#buffer = buffer;
    this.#streams = streams;
  }

  /** Of the wire at the index of its descriptor. To be called when its command is read: messages come in that order. */
  take(index: number): WireMessage {
    const state = this.#table.messageStates[index];
    if (state === IN_NUMBERS) return readShortLayer(this.#table, index);
    if (state !== POSTED) return NO_MESSAGE;
    return receiveMessageOnPort(this.#messages)?.message ?? NO_MESSAGE;
  }

  /** The same of a listener; null: there are none. */
  takeRules(): RealityRules | null {
    return receiveMessageOnPort(this.#messages)?.message ?? null;
  }

  /** In front of the event that has the main thread read it. */
  post(message: unknown): void {
    this.#messages.postMessage(message);
  }

  /** Null: it cannot be had, and what its words name is left to the main thread. */
  open(index: number, message: OpenMessage): Wire | null {
    const lowest = message.made ?? this.#openInner(index, message);
    let wire = lowest;
    for (const layer of message.layers) {
      if (wire === null || lowest === null) return null;
      const isStream = layer.kind === "stream";
      wire = isStream
        ? (message.openStream?.(wire, layer.target) ?? null)
        : this.#layered(wire, lowest, index, layer);
    }
    return wire;
  }

  #layered(wire: Wire, lowest: Wire, index: number, layer: Exclude<Layer, StreamLayer>): Wire | null {
    if (layer.kind === "opening") return new OpeningWire(wire, layer);
    if (layer.kind === "read-ahead") return new ReadAheadWire(wire, layer.payload);
    if (layer.kind === "sealed") return this.#sealedOver(wire, index, layer);
    if (layer.kind === "framed") return this.#framedOver(wire, index, layer);
    return layer.kind === "vision"
      ? new VisionWire(wire, layer.mayLeave && canLeave(lowest) ? lowest : null, layer)
      : new WebSocketWire(wire, layer, this.#maskKeys);
  }

  #openInner(index: number, message: OpenMessage): Wire | null {
    const { descriptors, kinds } = this.#table;
    const fd = int32At(descriptors, index);
    const kind = int32At(kinds, index);
    if (kind === PLAIN) return new PlainWire(fd);
    if (kind === QUIC) return QuicWire.open(this.#streams, index, (at) => this.#number(index, at));
    if (kind === SEALED || kind === VMESS || kind === ENCRYPTED)
      return this.#sealed(kind, index, fd, message);
    if (kind === RECORDS) return this.#openRecords(index, fd, message);
    const address = BigInt(this.#number(index, 0));
    const ssl = this.#sslFor(address);
    if (ssl === null) return null;
    const { tls = null } = message.under ?? {};
    const tickets = tls?.kind === "tls" ? this.nodes.ticketsOf(tls) : null;
    const { layers } = message;
    return new TlsWire(ssl, address, fd, {
      tickets,
      returns: layers.some(isFramed),
      isExact: layers.some(mayLeave),
      records: this.#records,
    });
  }

  /** Of this thread; null: it has no libcrypto. */
  #cipherMemory(): CipherMemory | null {
    if (this.#ciphers === undefined) this.#ciphers = CipherMemory.open(this.#buffer);
    return this.#ciphers;
  }

  #openRecords(index: number, fd: number, { unread: state, onTicket, layers }: OpenMessage): Wire | null {
    const memory = this.#cipherMemory();
    const suite = cipherSuite(this.#number(index, 4));
    if (memory === null || suite === null || state === null) return null;
    const word = (at: number): number => this.#number(index, at);
    return new RecordWire(memory, fd, { word, suite, state, onTicket, isExact: layers.some(mayLeave) });
  }

  /** Over a socket: its words are the wire's. */
  #sealed(
    form: typeof SEALED | typeof VMESS | typeof ENCRYPTED,
    index: number,
    fd: number,
    { unread, details }: WireMessage,
  ): Wire | null {
    const memory = this.#cipherMemory();
    if (memory === null) return null;
    return openSealed(form, memory, new SocketBelow(memory, fd, details.opening), {
      word: (at) => this.#number(index, at),
      unread,
      details,
      keep: (at, context) => this.#keep(index, at, context),
      spare: () => this.#spare(index),
    });
  }

  /** Over a wire: what is to be freed of it stands behind the words of that one. A faulty peer ends the connection. */
  #sealedOver(inner: Wire, index: number, layer: SealedLayer): Wire | null {
    const memory = this.#cipherMemory();
    if (memory === null) return null;
    const { form, numbers, unread, details = {} } = layer;
    return openSealed(LAYER_FORMS[form], memory, new WireBelow(memory, inner), {
      word: (at) => numbers[at] ?? 0,
      unread,
      details,
      keep: (at, context) => this.#keep(index, LAYER_CONTEXTS + at, context),
      spare: () => {},
    });
  }

  #keep(index: number, at: number, context: bigint): void {
    this.#table.wireNumbers[index * WIRE_NUMBERS + at] = Number(context);
  }

  #spare(index: number): void {
    this.#table.kinds[index] = LEFT_OPEN;
  }

  #framedOver(inner: Wire, index: number, layer: FramedLayer): Wire {
    if (!canReturn(inner)) throw new TypeError("a session over a wire that does not come back");
    const spare = (remainder: WireRemainder): void => {
      this.#messages.postMessage({ index, remainder } satisfies ReturnedRemainder);
      this.#table.messageStates[index] = RETURNED;
      this.#table.kinds[index] = LEFT_OPEN;
    };
    return new FramedWire(inner, layer, spare);
  }

  /** Where that object writes from now on. */
  #sslFor(address: bigint): Ssl | null {
    const ssl = this.ssl();
    return ssl?.outgoing.collect(address) === true ? ssl : null;
  }

  /** The thread's. */
  ssl(): Ssl | null {
    if (this.#ssl === undefined) this.#ssl = openSsl(this.#buffer);
    return this.#ssl;
  }

  /** To be called before a wire is dropped: should this worker die meanwhile, its objects are not freed twice. */
  disown(index: number): void {
    const { owned, wireNumbers } = this.#table;
    owned[index] = PLAIN;
    // One by one: four words are fewer than what `fill` costs.
    for (let at = LAYER_CONTEXTS; at < WIRE_NUMBERS; at++) wireNumbers[index * WIRE_NUMBERS + at] = 0;
  }

  #number(index: number, at: number): number {
    return float64At(this.#table.wireNumbers, index * WIRE_NUMBERS + at);
  }
}
