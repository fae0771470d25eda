/** A look at a client's hello before anybody answers it. */
import type { Duplex } from "node:stream";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { decodeClientHello } from "#transport/tls13/hello-messages.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";
import type { Extensions } from "#transport/tls13/extensions.ts";

/**
 * What `read` makes of the extensions; all that was read stays in the stream. Null: there is no hello, or one that cannot
 * be decoded, to which the library has an answer. Throws where none comes, or only a part.
 */
export async function peekHello<T>(
  stream: Duplex,
  signal: AbortSignal | undefined,
  read: (extensions: Extensions) => T | null,
): Promise<T | null> {
  using reader = new ByteReader(stream, signal === undefined ? {} : { signal });
  const hello = new HelloReader();
  return await reader.take((bytes, seen) => {
    const message = hello.push(bytes.subarray(seen));
    if (message === "more") return null;
    return { value: message === "none" ? null : decoded(message, read), size: 0 };
  });
}

function decoded<T>(message: Buffer, read: (extensions: Extensions) => T | null): T | null {
  try {
    return read(decodeClientHello(message.subarray(4)).extensions);
  } catch {
    return null;
  }
}
