/** What is taken of an answer over HTTP. */
import { DialError, ProtocolError } from "#core/errors.ts";
import { MAX_MESSAGE_BYTES } from "#dns/types.ts";

export function checkStatus(status: number, text: string): void {
  if (status !== 200) throw new ProtocolError(`${text} answered with HTTP status ${status}`);
}

/** At most one DNS message; more is cut off by ending the stream. */
export function readBody(
  stream: NodeJS.ReadableStream & { destroy(error?: Error): unknown },
  text: string,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  promise.catch(() => {}); // the wait may already have ended by its signal
  const chunks: Uint8Array[] = [];
  let size = 0;
  stream.on("data", (chunk: Uint8Array) => {
    size += chunk.length;
    if (size <= MAX_MESSAGE_BYTES) return void chunks.push(chunk);
    reject(new ProtocolError(`${text} sent more than one DNS message`));
    stream.destroy();
  });
  stream.on("end", () => resolve(Buffer.concat(chunks)));
  stream.on("error", reject);
  stream.on("close", () => reject(new DialError("failed", `${text} closed the request`)));
  return promise;
}
