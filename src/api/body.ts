/** Request bodies: bounded, read by us (the Content-Type does not decide), and never the end of the connection. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "#core/errors.ts";
import { bodyInvalid } from "./errors.ts";

export const MAX_BODY_BYTES = 1_048_576;
/** What is thrown away after a 413 so that the connection stays usable; a client that sends more loses it. */
const DISCARD_BYTES = 64 * 1_048_576;
/** HTTP/1.1 has the server's own time-out for a whole request; this one holds for HTTP/2 as well. */
const BODY_TIMEOUT_MS = 30_000;

export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  limitBytes: number,
  tooLarge: string,
): Promise<Uint8Array> {
  const { headers } = request;
  if (request.httpVersionMajor === 1 && isBodyless(headers)) return new Uint8Array();
  if (Number(headers["content-length"] ?? 0) > limitBytes) {
    discard(request, 0);
    throw new ApiError(413, tooLarge);
  }
  if (headers.expect !== undefined) response.writeContinue();
  return collect(request, limitBytes, tooLarge);
}

function isBodyless(headers: IncomingMessage["headers"]): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] === undefined && (length === undefined || length === "0");
}

function collect(request: IncomingMessage, limitBytes: number, tooLarge: string): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const gathered = new Gathered();
  const timer = setTimeout(() => reject(new ApiError(408, "Request Timeout")), BODY_TIMEOUT_MS);
  const onData = (chunk: Buffer): void => {
    const sizeBytes = gathered.length + chunk.length;
    if (sizeBytes <= limitBytes) {
      gathered.add(chunk);
      return;
    }
    request.off("data", onData);
    discard(request, sizeBytes);
    reject(new ApiError(413, tooLarge));
  };
  request.on("data", onData);
  request.on("end", () => resolve(gathered.bytes));
  request.on("error", (error) => reject(brokenOff({ cause: error })));
  request.on("close", () => request.readableEnded || reject(brokenOff()));
  return promise.finally(() => clearTimeout(timer));
}

/** Bytes in one piece that grows: kept as they come, a body of single bytes would take 200 times its size. */
class Gathered {
  #room = Buffer.alloc(0);
  length = 0;

  add(chunk: Buffer): void {
    const length = this.length + chunk.length;
    if (length > this.#room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#room.length));
      this.#room.copy(larger, 0, 0, this.length);
      this.#room = larger;
    }
    chunk.copy(this.#room, this.length);
    this.length = length;
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.length);
  }
}

/** The client has gone before the answer: not worth a line in the log. */
function brokenOff(options?: ErrorOptions): ApiError {
  return new ApiError(400, "the request broke off", options);
}

function discard(request: IncomingMessage, alreadyBytes: number): void {
  let sizeBytes = alreadyBytes;
  request.on("error", () => request.destroy()); // the client gave up, and no answer reaches it
  request.on("data", (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > DISCARD_BYTES) request.destroy();
  });
  request.resume();
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

export function decodeText(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw bodyInvalid(); // not UTF-8, so no JSON either (RFC 8259 §8.1)
  }
}

/** One JSON value and nothing behind it. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes);
  try {
    return JSON.parse(text);
  } catch {
    throw bodyInvalid(); // the parser's own text would quote the body, which may hold a secret
  }
}
