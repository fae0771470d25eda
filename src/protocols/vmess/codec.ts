import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { DetachedState, Opening } from "#core/wire-state.ts";
import type { VmessResponse } from "#core/wire-details.ts";
import type { BeginningCodec } from "#net/stream/departing-stream.ts";
import { BodyOpener, BodySealer } from "./body.ts";
import {
  awaitedResponse,
  checkResponse,
  COMMAND_UDP,
  openResponseLength,
  type RequestHeader,
  RESPONSE_LENGTH_BYTES,
  sealResponse,
} from "./header.ts";

const EMPTY = Buffer.alloc(0);

/** Both directions of one connection behind the request header. */
export class VmessCodec implements BeginningCodec {
  readonly wireKind = "vmess";
  readonly #request: RequestHeader;
  readonly #isClient: boolean;
  readonly #sealer: BodySealer;
  readonly #opener: BodyOpener;
  readonly #arrived = new ByteQueue();
  /** Goes out with the first bytes. */
  #opening: Buffer;
  /** A client's: has the response header been read? */
  #responded: boolean;
  #responseBytes = -1;
  /** By what that is opened, once it has come. */
  #awaited: VmessResponse | null = null;

  /** `sealedRequest`: the client's header; null makes this the server's side. */
  constructor(request: RequestHeader, sealedRequest: Buffer | null) {
    const whole = request.command === COMMAND_UDP;
    const client = sealedRequest !== null;
    this.#isClient = client;
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

  begin(): Buffer {
    const opening = this.#opening;
    this.#opening = EMPTY;
    return opening;
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

  /** Streams without a cipher are bytes as they are behind the headers. */
  get bare(): boolean {
    return this.#sealer.isBare && this.#responded && this.#opening.length === 0;
  }

  get layer(): Opening | null {
    const isServers = this.#sealer.isBare && this.#responded && this.#opening.length > 0;
    return isServers ? { kind: "opening", ours: this.#opening, isOwed: true, theirs: null } : null;
  }

  /** A client whose request is not out has nothing to go on with. */
  get canDepart(): boolean {
    const isUnsaid = this.#isClient && this.#opening.length > 0;
    if (isUnsaid || this.#opener.hasEnded) return false;
    return this.#sealer.canDepart && this.#request.command !== COMMAND_UDP;
  }

  /**
   * Numbers: the contexts of opening and sealing, those of opened and sealed sizes or 0, 1 where a faulty peer is spared.
   */
  depart(isSpared: boolean): DetachedState {
    const [inward, outward] = [this.#opener.depart(), this.#sealer.depart()];
    const [opening, openSizes] = inward.contexts;
    const [sealing, sealSizes] = outward.contexts;
    const response = this.#opening.length > 0 ? new Uint8Array(this.#opening) : null;
    const awaited = this.#responded ? null : awaitedResponse(this.#request, this.#responseBytes);
    const { nextBytes } = this.#sealer;
    return {
      numbers: [opening, sealing, openSizes, sealSizes, isSpared ? 1 : 0],
      unread: this.#arrived.length === 0 ? null : Uint8Array.from(this.#arrived.takeAll()),
      details: {
        vmess: { inward: inward.state, outward: outward.state, response, awaited, nextBytes },
      },
    };
  }

  #takeResponse(): boolean {
    const awaited = (this.#awaited ??= awaitedResponse(this.#request, -1));
    if (this.#responseBytes < 0) {
      const sealed = this.#arrived.take(RESPONSE_LENGTH_BYTES);
      if (sealed === null) return false;
      this.#responseBytes = openResponseLength(awaited, sealed);
    }
    const sealed = this.#arrived.take(this.#responseBytes);
    if (sealed === null) return false;
    checkResponse(awaited, sealed);
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
