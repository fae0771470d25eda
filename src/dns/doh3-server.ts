/** DNS over HTTP/3 (RFC 8484, RFC 9114) with one client. */
import { messageOf, ProtocolError } from "#core/errors.ts";
import { H3_EXCESSIVE_LOAD } from "#transport/http3/codes.ts";
import { Http3Server, type Http3Answer, type Http3Request } from "#transport/http3/server.ts";
import type { Connection } from "#transport/quic/connection.ts";
import type { QuicServerEvents } from "#transport/quic/server/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { type ClientQuestions, Overloaded } from "./client-questions.ts";
import { paddedAnswer } from "./edns.ts";
import { smallestTtlOf } from "./packet.ts";
import { MAX_MESSAGE_BYTES } from "./types.ts";

const PATH = "/dns-query";
const MEDIA_TYPE = "application/dns-message";
export const EXCESSIVE_LOAD = H3_EXCESSIVE_LOAD;

export class Doh3Server implements QuicServerEvents {
  readonly #questions: ClientQuestions;
  readonly #http: Http3Server;

  constructor(connection: Connection, questions: ClientQuestions) {
    this.#questions = questions;
    this.#http = new Http3Server(connection, { answer: (request) => this.#answer(request) });
  }

  onDatagram(): void {}

  onStream(stream: QuicStream): void {
    this.#http.take(stream);
  }

  async #answer(request: Http3Request): Promise<Http3Answer> {
    const [path, query = ""] = request.path.split("?", 2);
    if (path !== PATH) return refusal(404);
    if (request.method === "GET") return this.#resolve(decodeQuery(new URLSearchParams(query).get("dns")));
    if (request.method !== "POST") return refusal(405);
    const type = new Map(request.fields).get("content-type");
    if (type !== MEDIA_TYPE) return refusal(415);
    return this.#resolve(await readBody(request));
  }

  async #resolve(message: Buffer | number): Promise<Http3Answer> {
    if (typeof message === "number") return refusal(message);
    try {
      const body = Buffer.from(paddedAnswer(await this.#questions.ask(message)));
      const fields = [
        ["content-type", MEDIA_TYPE],
        ["content-length", String(body.length)],
        ["cache-control", `max-age=${smallestTtlOf(body)}`], // RFC 8484 §5.1: no longer than the smallest TTL
      ] as const;
      return { status: 200, fields, body };
    } catch (error) {
      if (error instanceof ProtocolError) return refusal(400);
      this.#questions.log.debug(() => `[DNS] no answer over HTTP/3: ${messageOf(error)}`);
      return refusal(error instanceof Overloaded ? 503 : 500);
    }
  }
}

const refusal = (status: number): Http3Answer => ({ status, fields: [["content-length", "0"]], body: null });

/** A status where it is no message. */
function decodeQuery(dns: string | null): Buffer | number {
  if (dns === null || !/^[A-Za-z0-9_-]+$/.test(dns)) return 400;
  const message = Buffer.from(dns, "base64url");
  return message.length > MAX_MESSAGE_BYTES ? 414 : message;
}

/** A status where it is too long, or has broken off. */
async function readBody({ body }: Http3Request): Promise<Buffer | number> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of body) {
      bytes += (piece as Buffer).length;
      if (bytes > MAX_MESSAGE_BYTES) return 413;
      pieces.push(piece as Buffer);
    }
  } catch {
    return 400;
  }
  return Buffer.concat(pieces);
}
