/** Bulk through an outbound, every byte checked. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Outbound } from "#core/outbound.ts";
import { openTcpOrigin } from "./origin.ts";

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export async function pour(stream: Duplex, bytes: Buffer, pieceBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceBytes)
    if (!stream.write(bytes.subarray(at, at + pieceBytes))) await once(stream, "drain");
}

/** Reads exactly `size` bytes and answers with their digest. */
export function digestNext(stream: Duplex, size: number): Promise<string> {
  const hash = createHash("sha256");
  let left = size;
  return new Promise((resolve, reject) => {
    stream.once("error", reject);
    stream.once("close", () => reject(new Error(`closed with ${left} bytes missing`)));
    stream.on("data", function take(chunk: Buffer) {
      hash.update(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left > 0) return;
      stream.off("data", take);
      resolve(hash.digest("hex"));
    });
  });
}

/** `size` random bytes each way at the same time, both sides checked. `speakFirst` says which side sends the first byte. */
export async function exchange(
  outbound: Outbound,
  size: number,
  { pieceBytes = 65_536, host = null as string | null } = {},
): Promise<Duplex> {
  const [up, down] = [randomBytes(size), randomBytes(size)];
  const arrived = Promise.withResolvers<string>();
  arrived.promise.catch(() => {}); // it may fail before anybody waits for it
  const serve = (socket: Socket): void => {
    digestNext(socket, size).then(arrived.resolve, arrived.reject);
    pour(socket, down, pieceBytes).catch(arrived.reject);
  };
  await using origin = await openTcpOrigin(serve);
  const destination = host === null ? origin.destination : { host, ip: null, port: origin.port };
  const signal = AbortSignal.timeout(20_000);
  const stream = await outbound.connect(destination, { signal, metadata: null });
  const received = digestNext(stream, size);
  received.catch(() => {});
  await pour(stream, up, pieceBytes);
  assert.equal(await received, digestOf(down), "down");
  assert.equal(await arrived.promise, digestOf(up), "up");
  stream.on("error", () => {}).destroy();
  return stream;
}
