import { Duplex } from "node:stream";
import { onEnd } from "#net/stream/late-end.ts";
import { LAYERS, LOWER_STREAM, LOWER_DETACHED } from "#core/handover.ts";
import type { Layer } from "#core/wire-state.ts";
import type { Secured } from "#transport/security.ts";
import type { Bypass } from "#core/tls-bypass.ts";
import { BlockCutter } from "#protocols/shared/vision-cutter.ts";
import { HandshakeInspector } from "#protocols/shared/vision-inspector.ts";
import { CONTINUE, DIRECT, END, Unpadder } from "#protocols/shared/vision-padding.ts";
import type { AnswerStripper } from "./wire.ts";
import { asError } from "#core/errors.ts";

export interface VisionOptions {
  readonly secured: Secured & { readonly bypass: Bypass };
  readonly id: Buffer;
  /** Sent in front of the first block, in the same TLS record: the request, or the response header. */
  readonly opening: Buffer;
  /** Client: takes the answer's header off. */
  readonly answer: AnswerStripper | null;
  /** Send the opening with an empty block when nothing was written for so long; null: wait for bytes. */
  readonly openAfterMs: number | null;
}

type WriteState = "padded" | "plain" | "raw";
type Done = (error?: Error | null) => void;

const EMPTY = Buffer.alloc(0);

/**
 * A stream whose TLS handshake inside is padded, and which leaves the outer TLS, each direction by itself, once the
 * inner one encrypts. Half-close is kept. It owns the connection.
 */
export class VisionStream extends Duplex {
  readonly #secured: Duplex;
  readonly #bypass: Bypass;
  readonly #unpadder: Unpadder;
  readonly #answer: AnswerStripper | null;
  readonly #inspector = new HandshakeInspector();
  readonly #blocks: BlockCutter;
  readonly #openTimer: NodeJS.Timeout | null;
  /** It is out as soon as the first block is. */
  readonly #opening: Buffer;
  readonly #id: Buffer;
  #writeState: WriteState = "padded";
  #rawRead = false;
  #readEnded = false;
  #handedOver = false;
  /** Blocks are being taken apart: what lies behind this content has not been looked at. */
  #isUnpadding = false;
  #raw: Duplex | null = null;
  #afterDrain: Done | null = null;
  readonly #emit = (content: Buffer): void => {
    this.#inspector.see(content);
    this.#deliver(content);
  };

  constructor({ secured, id, opening, answer, openAfterMs }: VisionOptions) {
    super({ allowHalfOpen: true });
    this.#secured = secured.stream;
    this.#bypass = secured.bypass;
    this.#unpadder = new Unpadder(id);
    this.#answer = answer;
    this.#opening = opening;
    this.#id = id;
    this.#blocks = new BlockCutter({ id, opening, mayLeave: true }, this.#inspector);
    this.#openTimer =
      openAfterMs === null
        ? null
        : setTimeout(() => {
            if (this.#blocks.isFirst && !this.destroyed)
              this.#secured.write(this.#blocks.empty(CONTINUE, true));
          }, openAfterMs);
    this.#listen(this.#secured);
    this.#secured.resume(); // and never paused again: `hold` is the brake, see Bypass
  }

  /** Has the outer TLS been left? Per direction. */
  get raw(): { readonly read: boolean; readonly write: boolean } {
    return { read: this.#rawRead, write: this.#writeState === "raw" };
  }

  /** Behind the switch what lies below TLS; where both sides have said that there is none, the secured stream itself. */
  [LOWER_STREAM](): Duplex | null {
    const busy = this.destroyed || this.#readEnded || this.writableEnded || this.#afterDrain !== null;
    if (busy || this.#isUnpadding) return null;
    if (this.#rawRead && this.#writeState === "raw") return this.#bypass.below;
    return this.#staysInTls ? this.#secured : null;
  }

  /**
   * Neither direction will leave TLS: one side at least has said so, and what is left of the other's padding can be
   * done elsewhere. A server that has said nothing ends its padding with the first word, for the client has ended its own.
   * Where a ClientHello was seen, the other side may still find a reason to leave.
   */
  get #staysInTls(): boolean {
    const { isTls, isTls12OrAbove } = this.#inspector;
    if (isTls || isTls12OrAbove || this.#rawRead || this.#writeState === "raw")
      return this.#isUnpadded && this.#writeState === "plain";
    return this.#answer === null ? this.#isUnpadded : this.#writeState === "plain";
  }

  [LAYERS](): readonly Layer[] {
    if (!this.#staysInTls) return [];
    const theirs = this.#answer === null || this.#answer.done ? null : this.#answer.stage;
    const reading = this.#isUnpadded ? null : this.#unpadder.snapshot;
    const isPadded = this.#writeState === "padded";
    const { isFirst } = this.#blocks;
    const writing = isPadded ? { opening: isFirst ? this.#opening : EMPTY, isFirst } : null;
    const header: Layer = { kind: "opening", ours: null, isOwed: false, theirs };
    const role = this.#answer === null ? "server" : "client";
    const blocks: Layer = { kind: "vision", role, id: this.#id, mayLeave: false, reading, writing };
    return [...(theirs === null ? [] : [header]), ...((reading ?? writing) === null ? [] : [blocks])];
  }

  /** The peer has said that it leaves nothing behind and pads no more. */
  get #isUnpadded(): boolean {
    return this.#unpadder.state === "plain";
  }

  [LOWER_DETACHED](): void {
    this.#handedOver = true;
  }

  override _read(): void {
    this.#bypass.release();
  }

  override _write(bytes: Buffer, _encoding: string, done: Done): void {
    if (this.#writeState === "raw") this.#writeThrough(this.#raw as Duplex, bytes, done);
    else if (this.#writeState === "plain") this.#writeThrough(this.#secured, bytes, done);
    else this.#writePadded(bytes, done);
  }

  override _final(done: Done): void {
    this.#stopTimer();
    if (this.#writeState === "raw") this.#raw?.end(done);
    else if (this.#blocks.isFirst) this.#secured.end(this.#blocks.empty(END, true), done);
    else this.#secured.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#stopTimer();
    this.#bypass.destroy(error ?? undefined);
    this.#secured.destroy();
    done(error);
  }

  #stopTimer(): void {
    if (this.#openTimer !== null) clearTimeout(this.#openTimer);
  }

  #listen(secured: Duplex): void {
    secured.on("data", (bytes: Buffer) => {
      try {
        this.#takeSecured(bytes);
      } catch (error) {
        this.destroy(asError(error));
      }
    });
    onEnd(secured, () => {
      if (!this.#rawRead) this.#endRead();
    });
    secured.on("error", (error) => {
      if (!this.#rawRead || this.#writeState !== "raw") this.destroy(error);
    });
    secured.on("close", () => {
      if (!this.#rawRead || this.#writeState !== "raw") this.#closedBelow();
    });
    secured.on("drain", () => this.#drained());
  }

  #takeSecured(bytes: Buffer): void {
    if (this.#rawRead || this.#readEnded) return;
    const padded = this.#answer === null || this.#answer.done ? bytes : this.#answer.strip(bytes);
    if (padded.length === 0) return;
    if (this.#isUnpadded) return this.#deliver(padded);
    this.#isUnpadding = true;
    const behind = this.#unpadder.take(padded, this.#emit);
    this.#isUnpadding = false;
    const direct = this.#unpadder.state === "direct";
    if (direct) this.#rawRead = true;
    if (behind !== null && behind.length > 0) this.#deliver(behind);
    if (direct) this.#bypass.leaveRead({ data: (raw) => this.#deliver(raw), end: () => this.#endRead() });
    else if (this.#isUnpadded) this.#endPadding();
  }

  /**
   * The server has seen that there is no TLS inside. Who only reads would never say so from here, and a worker could not go
   * on with the connection. A server does not: its answer would come before it is known whether the dial went well.
   */
  #endPadding(): void {
    const isIdle = this.writableLength === 0 && !this.writableEnded;
    if (this.#answer === null || this.#writeState !== "padded" || !isIdle) return;
    if (this.#inspector.isTls12OrAbove) return;
    this.#stopTimer();
    this.#secured.write(this.#blocks.empty(END, false));
    this.#writeState = "plain";
  }

  #deliver(bytes: Buffer): void {
    if (!this.destroyed && !this.push(bytes)) this.#bypass.hold();
  }

  #endRead(): void {
    this.#readEnded = true;
    this.push(null);
  }

  #closedBelow(): void {
    if (this.destroyed || this.#handedOver || (this.#readEnded && this.writableFinished)) return;
    this.destroy(new Error("the connection below closed before its end"));
  }

  /** One block a TLS write, each acknowledged before what follows it, which must not pass it where that goes another way. */
  #writePadded(bytes: Buffer, done: Done): void {
    this.#stopTimer();
    const block = this.#blocks.next(bytes);
    const { command, taken } = this.#blocks;
    this.#secured.write(block, (error) => {
      if (error || this.destroyed) return done(error);
      if (command !== CONTINUE) this.#writeState = command === DIRECT ? "raw" : "plain";
      if (command === DIRECT) this.#leaveWrite();
      if (taken === bytes.length) done();
      else this._write(bytes.subarray(taken), "", done);
    });
  }

  #leaveWrite(): void {
    this.#raw = this.#bypass.leaveWrite();
    this.#raw.on("drain", () => this.#drained());
    this.#raw.on("error", (error) => this.destroy(error));
    this.#raw.on("close", () => this.#closedBelow());
  }

  #writeThrough(stream: Duplex, bytes: Buffer, done: Done): void {
    if (stream.write(bytes)) done();
    else this.#afterDrain = done;
  }

  #drained(): void {
    const done = this.#afterDrain;
    this.#afterDrain = null;
    done?.();
  }
}
