import { performance } from "node:perf_hooks";
import type { Http2Recipe } from "#core/wire-recipe.ts";
import { itemAt } from "#lib/at.ts";
import type { Field } from "#transport/http-fields/section.ts";
import * as http2 from "#transport/http2/frames.ts";
import { padding } from "#transport/xhttp/padding.ts";
import { Http2Framing } from "./http2-framing.ts";
import type { MuxHeard } from "./mux-framing.ts";

const NOTHING = Buffer.alloc(0);
/** Pings that were not answered, before the connection counts as lost. */
const MOST_UNANSWERED = 3;

/** To the server of a node: each stream is a request, whose bodies both ways are the stream. */
export class Http2ClientFraming extends Http2Framing {
  protected readonly lastTaken = 0;
  /** Servers by Node's library end a finished stream in this way, in place of trailers. */
  protected readonly endsByReset = true;
  readonly #recipe: Http2Recipe;
  #pingedAtMs = performance.now();
  #unanswered = 0;

  constructor(recipe: Http2Recipe) {
    super(recipe.isGrpc);
    this.#recipe = recipe;
  }

  override get mostStreams(): number {
    return Math.min(super.mostStreams, this.#recipe.maxStreams || Infinity);
  }

  /** What goes out in front of all requests. */
  encodePreface(): Buffer {
    return Buffer.concat([http2.CLIENT_PREFACE, this.encodeBeginning([[http2.ENABLE_PUSH, 0]])]);
  }

  encodeOpen(id: number): Uint8Array {
    const { requests, paddedReferer } = this.#recipe;
    const fields = itemAt(requests, Math.floor(Math.random() * requests.length));
    if (paddedReferer === null) return this.encodeFields(id, fields, http2.END_HEADERS);
    return this.encodeFields(id, fields, http2.END_HEADERS, ["referer", `${paddedReferer}${padding()}`]);
  }

  mayOpen(): boolean {
    return false; // servers open nothing
  }

  encodeAccepted(): null {
    return null;
  }

  encodeEnd(id: number): Uint8Array {
    return http2.encodeFrame(http2.DATA, http2.END_STREAM, id, NOTHING);
  }

  /** Only of nodes that are told to. */
  keepAlive(): Uint8Array | null {
    const { pingIntervalMs } = this.#recipe;
    const nowMs = performance.now();
    if (pingIntervalMs === 0 || nowMs - this.#pingedAtMs < pingIntervalMs) return NOTHING;
    if (this.#unanswered >= MOST_UNANSWERED) return null;
    this.#unanswered++;
    this.#pingedAtMs = nowMs;
    return http2.encodeFrame(http2.PING, 0, 0, Buffer.alloc(8));
  }

  protected override onPong(): void {
    this.#unanswered = 0;
  }

  protected onGoAway(lastId: number, heard: MuxHeard): void {
    heard.retire(lastId);
  }

  /** Anything but 200, or a gRPC status other than 0, is the server's refusal. */
  protected onFields(id: number, fields: readonly Field[], isLast: boolean, heard: MuxHeard): boolean {
    const status = valueOf(fields, ":status");
    const grpcStatus = valueOf(fields, "grpc-status");
    if (status?.startsWith("1") === true) return !isLast; // the answer is still to come
    const isRefused = (status ?? "200") !== "200" || (grpcStatus ?? "0") !== "0";
    if (isRefused) heard.refuse(id);
    else if (isLast) heard.onFarEnd(id);
    return true;
  }
}

function valueOf(fields: readonly Field[], name: string): string | undefined {
  return fields.find(([other]) => other === name)?.[1];
}
