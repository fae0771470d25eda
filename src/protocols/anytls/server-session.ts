import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import { COPIES } from "#core/stream.ts";
import type { Destination } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { decodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";
import type { PaddingScheme } from "./padding.ts";
import { Session } from "./session.ts";
import { SessionStream } from "./stream.ts";
import {
  ALERT,
  decodeSettings,
  encodeFrame,
  encodeSettings,
  FIN,
  type Frame,
  SERVER_SETTINGS,
  SETTINGS,
  SYN,
  SYNACK,
  UPDATE_SCHEME,
  versionIn,
} from "./wire.ts";

/** Streams open at once in one session; one more is refused, the session continues. */
const MAX_STREAMS = 1024;

export interface ServerSessionOptions {
  readonly scheme: PaddingScheme;
  /** A stream has named its target. */
  onStream(stream: ServerStream, destination: Destination): void;
  onClosed(): void;
}

export class ServerSession extends Session {
  readonly #options: ServerSessionOptions;
  /** Streams that the peer has ended, and whose last bytes are still to be passed on. */
  #leaving = 0;
  /** 0: no settings have come. */
  #clientVersion = 0;

  constructor(wire: Duplex, options: ServerSessionOptions) {
    super(wire);
    this.#options = options;
  }

  protected onFrame({ command, streamId, data }: Frame): void {
    if (command === SYN) this.#open(streamId);
    else if (command === SETTINGS && data.length > 0) this.#configure(data);
    else if (command === ALERT) this.close(null);
    else if (command === FIN) {
      const stream = this.streams.get(streamId);
      if (stream === undefined) return;
      stream.farEnd();
      this.forget(stream);
      if (!stream.destroyed) this.#letLeave(stream);
    }
  }

  #letLeave(stream: SessionStream): void {
    this.#leaving++;
    stream.once("close", () => this.#leaving--);
  }

  #configure(data: Buffer): void {
    const settings = decodeSettings(data);
    const { scheme } = this.#options;
    this.#clientVersion = versionIn(settings);
    // Order matters to clients: scheme, settings, then the answers to streams.
    if (settings.get("padding-md5") !== scheme.md5) this.send(encodeFrame(UPDATE_SCHEME, 0, scheme.raw));
    if (this.#clientVersion >= 2) this.send(encodeFrame(SERVER_SETTINGS, 0, encodeSettings({ v: "2" })));
  }

  #open(id: number): void {
    if (this.#clientVersion === 0) {
      this.send(encodeFrame(ALERT, 0, Buffer.from("client did not send its settings")));
      this.close(null);
    } else if (this.streams.size + this.#leaving >= MAX_STREAMS && !this.streams.has(id)) {
      this.send(encodeFrame(SYNACK, id, Buffer.from("too many streams")));
      this.send(encodeFrame(FIN, id));
    } else if (!this.streams.has(id))
      this.streams.set(id, new ServerStream(this, id, (stream, to) => this.#options.onStream(stream, to)));
  }

  /** Reports the result of the dial, where the client wants to know it. */
  answer(stream: ServerStream, failure: Error | null): void {
    if (this.#clientVersion < 2 || this.streams.get(stream.id) !== stream) return;
    this.send(encodeFrame(SYNACK, stream.id, Buffer.from(failure === null ? "" : problemOf(failure))));
  }

  protected onClosed(error: Error | null): void {
    const left = [...this.streams.values()];
    this.streams.clear();
    for (const stream of left) stream.destroy(error ?? new Error("the session ended"));
    this.#options.onClosed();
  }

  protected get mayLeave(): boolean {
    return true;
  }

  protected get padding(): undefined {
    return undefined;
  }

  protected onBack(): void {}
}

/** A short word: the user sees it, and must not learn about the network behind this server. */
export function problemOf(failure: Error): string {
  return failure instanceof DialError ? failure.reason : "failed";
}

export class ServerStream extends SessionStream {
  /** Frames are made of copies. */
  readonly [COPIES] = true;
  readonly #onTarget: (stream: ServerStream, destination: Destination) => void;
  /** What came before the target was complete; null: it is. */
  #pending: ByteQueue | null = new ByteQueue();

  constructor(
    session: ServerSession,
    id: number,
    onTarget: (stream: ServerStream, destination: Destination) => void,
  ) {
    super(session, id);
    this.#onTarget = onTarget;
    this.on("error", () => {}); // until the target is known there is no other listener
  }

  /** How the dial went. A failure ends the stream, the session stays. */
  answer(failure: Error | null): void {
    (this.session as ServerSession | null)?.answer(this, failure);
    if (failure !== null) this.destroy();
  }

  /** Throws `ProtocolError` for a target that is none: no client sends that. */
  override arrive(data: Buffer): boolean {
    const pending = this.#pending;
    if (pending === null) return super.arrive(data);
    pending.push(data);
    const head = pending.peekUpTo(MAX_SOCKS_ADDRESS);
    const address = decodeSocksAddress(head);
    if (address === null) return true;
    pending.skip(address.next);
    this.#pending = null;
    this.#onTarget(this, address.destination);
    return pending.length === 0 || this.destroyed || super.arrive(pending.takeAll());
  }

  protected get mayLeave(): boolean {
    return this.#pending === null;
  }

  override farEnd(): void {
    if (this.#pending !== null) this.destroy();
    else super.farEnd();
  }

  /** The protocol cannot end one direction alone. */
  override _final(done: () => void): void {
    this.leave();
    this.endReading();
    done();
  }
}
