import type { Http2Tunnels } from "#core/wire-details.ts";
import type { Field } from "#transport/http-fields/section.ts";
import * as http2 from "#transport/http2/frames.ts";
import { answerTunnel, type Carrier, trailersOf, type TunnelAnswer } from "#transport/http2/tunnels.ts";
import { MAX_STREAMS } from "#transport/http2/windows.ts";
import { Http2Framing } from "./http2-framing.ts";
import type { MuxHeard } from "./mux-framing.ts";

const NOTHING = Buffer.alloc(0);
const LAST = http2.END_HEADERS | http2.END_STREAM;

/** Of a listener's client: its requests for a path that is offered are the streams. The listener has one carrier. */
export class Http2ServerFraming extends Http2Framing {
  lastTaken = 0;
  protected readonly endsByReset = false;
  readonly #tunnels: Http2Tunnels;
  readonly #carrier: Carrier;
  /** To the request that is about to be a stream. */
  #answer: TunnelAnswer | null = null;

  constructor(tunnels: Http2Tunnels) {
    super(tunnels.grpcServiceName !== null);
    this.#tunnels = tunnels;
    this.#carrier = carrierOf(tunnels);
  }

  /** Goes out in front of all answers. */
  encodeSettings(): Buffer {
    return this.encodeBeginning([[http2.MAX_CONCURRENT_STREAMS, MAX_STREAMS]]);
  }

  encodeOpen(): Uint8Array {
    return NOTHING; // servers open nothing
  }

  mayOpen(_id: number, isOpen: boolean): boolean {
    return !isOpen;
  }

  encodeAccepted(id: number): Uint8Array {
    const { fields = [], padding } = this.#answer ?? {};
    return this.encodeFields(id, fields, http2.END_HEADERS, padding);
  }

  encodeEnd(id: number): Uint8Array {
    const trailers = trailersOf(this.#carrier);
    return trailers === null
      ? http2.encodeFrame(http2.DATA, http2.END_STREAM, id, NOTHING)
      : this.encodeFields(id, trailers, LAST);
  }

  /** It may be asked for again (RFC 9113 §8.7). */
  override encodeRefused(id: number): Uint8Array {
    return http2.encodeNumber(http2.RST_STREAM, id, http2.REFUSED_STREAM);
  }

  /** Behind a whole answer it is no fault that nothing more is read (RFC 9113 §8.1). */
  override encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null {
    if (!endSent) return super.encodeLeft(id, endSent, farEnded);
    return farEnded ? null : http2.encodeNumber(http2.RST_STREAM, id, http2.NO_ERROR);
  }

  keepAlive(): Uint8Array {
    return NOTHING;
  }

  /** What the client has looked at are streams of ours, of which there are none. */
  protected onGoAway(_lastId: number, heard: MuxHeard): void {
    heard.retire();
  }

  protected onFields(id: number, fields: readonly Field[], isLast: boolean, heard: MuxHeard): boolean {
    const isNew = id > this.lastTaken;
    if (isNew && (id % 2 === 0 || !this.#onRequest(id, fields, heard))) return false;
    if (isLast) heard.onFarEnd(id); // of trailers, too, which say nothing else
    return isNew || isLast;
  }

  #onRequest(id: number, fields: readonly Field[], heard: MuxHeard): boolean {
    this.lastTaken = id;
    const valueOf = (name: string): string => fields.find(([other]) => other === name)?.[1] ?? "";
    const answer = answerTunnel(
      {
        method: valueOf(":method"),
        path: valueOf(":path"),
        authority: valueOf(":authority") || valueOf("host"),
        contentType: valueOf("content-type"),
        referer: valueOf("referer"),
      },
      this.#tunnels,
    );
    this.#answer = answer;
    if (answer.carrier !== null) return heard.onOpen(id);
    heard.say(this.encodeFields(id, answer.fields, LAST));
    return true;
  }
}

function carrierOf({ grpcServiceName, streamOne }: Http2Tunnels): Carrier {
  if (grpcServiceName !== null) return "grpc";
  return streamOne === null ? "h2" : "xhttp";
}
