/** The body of a download: received and unpacked piece by piece, so that no turn of the event loop is long. */
import type { IncomingMessage } from "node:http";
import { Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { DialError, messageOf } from "#core/errors.ts";

/** Pieces in order; `length` of all together in bytes. */
interface Pieces {
  readonly chunks: readonly Uint8Array[];
  readonly length: number;
}

/** What has come when the body is complete. Throws `DialError` where it is more than `maxBytes`, or ends early. */
export function readBody(response: IncomingMessage, host: string, maxBytes: number): Promise<Pieces> {
  const { promise, resolve, reject } = Promise.withResolvers<Pieces>();
  const chunks: Uint8Array[] = [];
  let length = 0;
  response.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length <= maxBytes) return void chunks.push(chunk);
    reject(new DialError("failed", `${host} sent more than ${maxBytes} bytes`));
    response.destroy();
  });
  response.on("end", () => resolve({ chunks, length }));
  response.on("error", reject);
  response.on("close", () => reject(new DialError("failed", `${host} closed the connection in the middle`)));
  return promise;
}

/** What comes of one step of unpacking at most. */
const chunkSize = 256 * 1024;

const UNPACKERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip({ chunkSize }),
  "x-gzip": () => createGunzip({ chunkSize }),
  deflate: () => createInflate({ chunkSize }),
  br: () => createBrotliDecompress({ chunkSize }),
  zstd: () => createZstdDecompress({ chunkSize }),
};

/** `encoding` as the answer names it. Throws `DialError` where it is none of ours, damaged, or unpacks to more than `maxBytes`. */
export async function unpack(
  packed: Pieces,
  encoding: string,
  host: string,
  maxBytes: number,
): Promise<Uint8Array> {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return joined(packed);
  const unpacker = Object.hasOwn(UNPACKERS, name) ? UNPACKERS[name] : undefined;
  if (unpacker === undefined)
    throw new DialError(
      "failed",
      `${host} packed its answer as ${JSON.stringify(encoding)}, which was not asked for`,
    );
  try {
    return await joined(
      await pipeline(Readable.from(packed.chunks), unpacker(), (source) => collected(source, maxBytes)),
    );
  } catch (error) {
    throw new DialError("failed", `${host}: the answer cannot be unpacked: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function collected(source: AsyncIterable<Buffer>, maxBytes: number): Promise<Pieces> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > maxBytes) throw new RangeError(`it is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return { chunks, length };
}

/** Copied in less than a millisecond. */
const JOINED_AT_ONCE = 1024 * 1024;

async function joined({ chunks, length }: Pieces): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let at = 0;
  let pauseAt = JOINED_AT_ONCE;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
    if (at < pauseAt) continue;
    pauseAt = at + JOINED_AT_ONCE;
    await nextTurn();
  }
  return bytes;
}
