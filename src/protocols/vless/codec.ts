import type { Opening } from "#core/wire-state.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { ANSWER, AnswerStripper } from "./wire.ts";

/** The client's side without a flow: adds the request in front of the first bytes, removes the response header. */
export class ClientCodec implements StreamCodec {
  #request: Buffer | null;
  readonly #answer = new AnswerStripper();

  constructor(request: Buffer) {
    this.#request = request;
  }

  get bare(): boolean {
    return this.#request === null && this.#answer.done;
  }

  get layer(): Opening | null {
    const isPending = this.#request === null && !this.#answer.done;
    return isPending ? { kind: "opening", ours: null, isOwed: false, theirs: this.#answer.stage } : null;
  }

  seal(plain: Buffer): Buffer {
    if (this.#request === null) return plain;
    const opening = Buffer.concat([this.#request, plain]); // one write: servers look at their first read only
    this.#request = null;
    return opening;
  }

  sealEnd(): Buffer | null {
    return this.#request;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    const plain = this.#answer.done ? wire : this.#answer.strip(wire);
    if (plain.length > 0) emit(plain);
  }

  openEnd(): void {} // a server with nothing to say sends no header either
}

/** The server's side without a flow: the answer's header goes with the first bytes, never alone. */
export class ServerCodec implements StreamCodec {
  #answered = false;

  get bare(): boolean {
    return this.#answered;
  }

  get layer(): Opening | null {
    return this.#answered ? null : { kind: "opening", ours: ANSWER, isOwed: false, theirs: null };
  }

  seal(plain: Buffer): Buffer {
    if (this.#answered) return plain;
    this.#answered = true;
    return Buffer.concat([ANSWER, plain]);
  }

  sealEnd(): null {
    return null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    emit(wire);
  }

  openEnd(): void {}
}
