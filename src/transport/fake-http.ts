import { ProtocolError } from "#core/errors.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { decodeHead, encodeHead } from "./http-head.ts";

export interface FakeHttpOptions {
  readonly method: string;
  readonly path: readonly string[];
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly host: string;
}

const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(Math.random() * items.length)];

/**
 * `network: http`: an HTTP/1.1 request is sent in front of the upload and an HTTP/1.1 response in front of the
 * download; both are decoys.
 */
export class FakeHttpCodec implements StreamCodec {
  #head: Buffer | null;
  #answer: Buffer | null = Buffer.alloc(0);

  constructor({ method, path, headers, host }: FakeHttpOptions) {
    const fields = new Map<string, string>([["Host", host]]);
    for (const [name, values] of Object.entries(headers)) {
      const own = name.toLowerCase() === "host" ? "Host" : name;
      const value = pick(values);
      if (value !== undefined) fields.set(own, value);
    }
    this.#head = encodeHead(`${method} ${pick(path) ?? "/"} HTTP/1.1`, fields);
  }

  seal(plain: Buffer): Buffer {
    if (this.#head === null) return plain;
    const opening = Buffer.concat([this.#head, plain]);
    this.#head = null;
    return opening;
  }

  sealEnd(): Buffer | null {
    return this.#head === null ? null : this.seal(Buffer.alloc(0));
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    if (this.#answer === null) return emit(wire);
    const bytes = Buffer.concat([this.#answer, wire]);
    const decoded = decodeHead(bytes, this.#answer.length);
    this.#answer = decoded === null ? bytes : null;
    if (decoded === null) return;
    if (!decoded.value.start.startsWith("HTTP/1."))
      throw new ProtocolError("the server did not answer as HTTP");
    if (decoded.size < bytes.length) emit(bytes.subarray(decoded.size));
  }

  openEnd(): void {} // a server that has nothing to say need not answer
}
