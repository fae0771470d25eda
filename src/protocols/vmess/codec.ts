import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { BodyOpener, BodySealer } from "./body.ts";
import {
  checkResponse,
  COMMAND_UDP,
  openResponseLength,
  type RequestHeader,
  RESPONSE_LENGTH_BYTES,
  sealResponse,
} from "./header.ts";

const EMPTY = Buffer.alloc(0);

/** Both directions of one connection behind the request header. */
export class VmessCodec implements StreamCodec {
  readonly #request: RequestHeader;
  readonly #sealer: BodySealer;
  readonly #opener: BodyOpener;
  readonly #arrived = new ByteQueue();
  /** Goes out with the first bytes. */
  #opening: Buffer;
  /** A client's: has the response header been read? */
  #responded: boolean;
  #responseBytes = -1;

  /** `sealedRequest`: the client's header; null makes this the server's side. */
  constructor(request: RequestHeader, sealedRequest: Buffer | null) {
    const whole = request.command === COMMAND_UDP;
    const client = sealedRequest !== null;
    this.#request = request;
    this.#opening = sealedRequest ?? sealResponse(request);
    this.#responded = !client;
    this.#sealer = new BodySealer(request, client ? "request" : "answer", whole);
    this.#opener = new BodyOpener(request, client ? "answer" : "request", whole);
  }

  seal(plain: Buffer): Buffer {
    const body = this.#sealer.seal(plain);
    if (this.#opening.length === 0) return body;
    const first = Buffer.concat([this.#opening, body]);
    this.#opening = EMPTY;
    return first;
  }

  sealEnd(): Buffer | null {
    const last = this.#sealer.sealEnd();
    const opening = this.#opening;
    this.#opening = EMPTY;
    if (opening.length === 0) return last;
    return last === null ? opening : Buffer.concat([opening, last]);
  }

  open(wire: Buffer, emit: (plain: Buffer | null) => void): void {
    this.#arrived.push(wire);
    if (!this.#responded && !this.#takeResponse()) return;
    this.#opener.open(this.#arrived, emit);
  }

  #takeResponse(): boolean {
    if (this.#responseBytes < 0) {
      const sealed = this.#arrived.take(RESPONSE_LENGTH_BYTES);
      if (sealed === null) return false;
      this.#responseBytes = openResponseLength(this.#request, sealed);
    }
    const sealed = this.#arrived.take(this.#responseBytes);
    if (sealed === null) return false;
    checkResponse(this.#request, sealed);
    this.#responded = true;
    return true;
  }

  /** An end without its mark is taken where it cuts nothing in two: not every peer sends marks. */
  openEnd(): void {
    if (!this.#responded)
      throw new ProtocolError(
        "the server ended without a response: check the uuid, and the clocks of both machines",
      );
    if (this.#arrived.length > 0 || !this.#opener.idle)
      throw new ProtocolError("the stream ended within a chunk");
  }

  close(): void {
    this.#sealer[Symbol.dispose]();
    this.#opener[Symbol.dispose]();
  }
}
