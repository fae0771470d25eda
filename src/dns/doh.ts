/** The DoH endpoint of the Controller (RFC 8484, dns.md §13) without HTTP: a request as data in, a response out. */
import { messageOf } from "#core/errors.ts";
import { openPacket } from "./packet.ts";
import type { HandleDns } from "./service.ts";
import { MAX_MESSAGE_BYTES } from "./types.ts";

export interface DohRequest {
  readonly method: string;
  /** The `dns` parameter of the query string; null: absent. */
  readonly dns: string | null;
  readonly contentType: string | null;
  /** Null: none. */
  readonly body: Uint8Array | null;
}

export interface DohResponse {
  readonly status: 200 | 405 | 500;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const MEDIA_TYPE = "application/dns-message";

export async function answerDoh(request: DohRequest, handle: HandleDns): Promise<DohResponse> {
  if (request.method !== "GET" && request.method !== "POST")
    return plain(405, "DNS over HTTPS takes GET and POST", { allow: "GET, POST" });
  const message = request.method === "GET" ? fromParameter(request.dns) : fromBody(request);
  if (typeof message === "string") return plain(500, message);
  try {
    const answer = await handle(message, { network: "tcp" });
    return {
      status: 200,
      headers: { "content-type": MEDIA_TYPE, "cache-control": `max-age=${maxAgeOf(answer)}` },
      body: answer,
    };
  } catch (error) {
    return plain(500, messageOf(error));
  }
}

/** A string says what is wrong. */
function fromParameter(text: string | null): Uint8Array | string {
  if (text === null || text === "") return "the dns parameter is missing";
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length > (MAX_MESSAGE_BYTES * 4) / 3 + 1)
    return "the dns parameter is not base64url without padding";
  return Buffer.from(text, "base64url");
}

function fromBody({ contentType, body }: DohRequest): Uint8Array | string {
  if (contentType !== MEDIA_TYPE) return `the content type must be ${MEDIA_TYPE}`;
  if (body === null || body.length === 0) return "the body is empty";
  return body.length > MAX_MESSAGE_BYTES ? "the body is larger than a DNS message" : body;
}

/** RFC 8484 §5.1: no longer than the smallest TTL. */
function maxAgeOf(answer: Uint8Array): number {
  try {
    return openPacket(answer).minTtl;
  } catch {
    return 0; // an answer without a question has no TTL either
  }
}

function plain(status: 405 | 500, text: string, headers: Record<string, string> = {}): DohResponse {
  const body = Buffer.from(`${text}\n`);
  return { status, headers: { ...headers, "content-type": "text/plain; charset=utf-8" }, body };
}
