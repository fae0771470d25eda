import type { Duplex } from "node:stream";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import type { PaddingDetails } from "#core/wire-details.ts";
import { ClientStream } from "./client-stream.ts";
import { addsLittle, shapeWrite } from "#protocols/shared/padded-write.ts";
import { type PaddingScheme, parseScheme, preamblePadding } from "./padding.ts";
import { Session } from "./session.ts";
import type { SessionStream } from "./stream.ts";
import {
  ALERT,
  decodeSettings,
  encodeFrame,
  encodePreamble,
  encodeSettings,
  FIN,
  type Frame,
  PSH,
  SERVER_SETTINGS,
  SETTINGS,
  SYN,
  SYNACK,
  UPDATE_SCHEME,
  versionIn,
} from "./wire.ts";
import { itemAt } from "#lib/at.ts";

const VERSION = 2;

export interface ClientSessionOptions {
  readonly hash: Buffer;
  readonly scheme: PaddingScheme;
  /** Free text that names the client. */
  readonly client: string;
  /** Grows from session to session: the youngest idle one is used first. */
  readonly sequence: number;
  readonly events: {
    /** The server wants another scheme for new sessions. */
    scheme(scheme: PaddingScheme): void;
    /** No stream is left. */
    idle(session: ClientSession): void;
    closed(session: ClientSession): void;
    /** The stream was never answered and needs another session. */
    stranded(stream: ClientStream): void;
  };
}

interface ShapedWrite {
  readonly pieces: readonly Buffer[];
  next: number;
  readonly done: (() => void) | undefined;
}

export class ClientSession extends Session {
  readonly #options: ClientSessionOptions;
  /** Writes so far; the preamble is number 0. */
  #writes = 0;
  /** Shaped writes that are not out yet, piece by piece: two at once would share a TLS record. */
  readonly #shaped: ShapedWrite[] = [];
  #flushing = false;
  /** What is said while a worker has the wire. */
  #unsaid: Buffer[] = [];
  #serverVersion = 1;
  #nextId = 1;

  constructor(wire: Duplex, options: ClientSessionOptions) {
    super(wire);
    this.#options = options;
    this.#enqueue([encodePreamble(options.hash, preamblePadding(options.scheme))], undefined);
  }

  get sequence(): number {
    return this.#options.sequence;
  }

  /** `target` in SOCKS form. */
  open(target: Buffer): ClientStream {
    const id = this.#nextId++;
    const awaited = id > 1 && this.#serverVersion >= VERSION;
    const stream = new ClientStream(this, id, target, awaited);
    this.#start(stream);
    return stream;
  }

  /** Takes a stream over that another session left behind. */
  adopt(stream: ClientStream): void {
    stream.id = this.#nextId++;
    this.#start(stream);
    stream.moveTo(this, stream.id);
  }

  #start(stream: ClientStream): void {
    this.streams.set(stream.id, stream);
    const syn = encodeFrame(SYN, stream.id);
    const target = encodeFrame(PSH, stream.id, stream.target);
    if (stream.id === 1) return this.send(Buffer.concat([this.#settings(), syn, target]));
    this.send(syn);
    this.send(target);
  }

  #settings(): Buffer {
    const { client, scheme } = this.#options;
    return encodeFrame(SETTINGS, 0, encodeSettings({ v: `${VERSION}`, client, "padding-md5": scheme.md5 }));
  }

  override send(bytes: Buffer, done?: () => void, through?: () => void): void {
    if (this.closed) return done?.();
    if (this.isAway) {
      this.#unsaid.push(bytes);
      return done?.();
    }
    const index = this.#writes;
    const { scheme } = this.#options;
    const shaped = index < scheme.stop;
    if (!shaped && this.#shaped.length === 0) return super.send(bytes, done, through);
    this.#enqueue(shaped ? shapeWrite(scheme, index, bytes) : [bytes], done);
  }

  #enqueue(pieces: readonly Buffer[], done: (() => void) | undefined): void {
    this.#writes++;
    this.#shaped.push({ pieces, next: 0, done });
    this.#flush();
  }

  #flush(): void {
    const write = this.#shaped[0];
    if (this.#flushing || this.closed || write === undefined) return;
    const piece = itemAt(write.pieces, write.next++);
    this.#flushing = true;
    this.sendAlone(piece, () => {
      this.#flushing = false;
      if (this.closed) return;
      if (write.next === write.pieces.length) {
        this.#shaped.shift();
        write.done?.();
      }
      this.#flush();
    });
  }

  protected onFrame({ command, streamId, data }: Frame): void {
    const stream = this.streams.get(streamId) as ClientStream | undefined;
    if (command === FIN && stream !== undefined) {
      stream.farEnd();
      this.forget(stream);
    } else if (command === SYNACK) stream?.answered(data.toString());
    else if (command === SERVER_SETTINGS) this.#serverVersion = versionIn(decodeSettings(data));
    else if (command === UPDATE_SCHEME) this.#takeScheme(data);
    else if (command === ALERT && data.length > 0)
      throw new ProtocolError(
        `the server says: ${data.toString("latin1", 0, 200).replaceAll(/[^\x20-\x7e]/g, "?")}`,
      );
  }

  #takeScheme(raw: Buffer): void {
    try {
      const scheme = parseScheme(Buffer.from(raw));
      if (addsLittle(scheme)) this.#options.events.scheme(scheme); // else a server that reads nothing fills our memory
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error; // a scheme that cannot be read is passed over as a whole
    }
  }

  protected override forget(stream: SessionStream): void {
    super.forget(stream);
    this.#lookIdle();
  }

  #lookIdle(): void {
    if (this.streams.size === 0 && !this.closed && !this.isAway) this.#options.events.idle(this);
  }

  get #isPadding(): boolean {
    return this.#writes < this.#options.scheme.stop;
  }

  protected get mayLeave(): boolean {
    return this.#shaped.length === 0 && (!this.#isPadding || addsLittle(this.#options.scheme));
  }

  protected get padding(): PaddingDetails | undefined {
    const { stop, lines } = this.#options.scheme;
    return this.#isPadding ? { shapes: { stop, lines }, writes: this.#writes } : undefined;
  }

  protected onBack(writes: number): void {
    this.#writes = Math.max(this.#writes, writes);
    const unsaid = this.#unsaid;
    this.#unsaid = [];
    for (const bytes of unsaid) this.send(bytes);
    this.#lookIdle();
  }

  protected onClosed(error: Error | null): void {
    const { events } = this.#options;
    const left = [...this.streams.values()] as ClientStream[];
    this.streams.clear();
    events.closed(this);
    for (const stream of left) {
      if (stream.mayMove) {
        stream.strand();
        events.stranded(stream);
      } else stream.destroy(error ?? new Error("the session ended"));
    }
    for (const { done } of this.#shaped.splice(0)) done?.();
  }
}
