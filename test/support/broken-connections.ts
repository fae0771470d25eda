/** What becomes of relayed connections that break. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { echoed, outcome } from "./client.ts";
import type { Echoes, Way } from "./connections.ts";
import { until } from "./until.ts";

/** A client that the origin has served for a while. */
export async function servedClient(way: Way): Promise<Socket> {
  const client = (await way.dial()) as Socket;
  for (let round = 0; round < 3; round++) await echoed(client, 100_000);
  return client;
}

/** A fault of one side becomes a fault of the other. `way` leads to `origin`. */
export async function passesResets(way: Way, origin: Echoes): Promise<void> {
  const first = outcome(await servedClient(way));
  origin.latest().resetAndDestroy();
  assert.equal(await first, "ECONNRESET");
  const second = await servedClient(way);
  const remote = outcome(origin.latest());
  second.resetAndDestroy();
  assert.equal(await remote, "ECONNRESET");
}

/** Eight times so many bytes go to an echo as chunks, and come back; what comes later is opened, too. */
export async function echoesChunks(client: Socket, codec: StreamCodec, bytes: number): Promise<void> {
  let backBytes = 0;
  client.on("data", (wire: Buffer) => codec.open(wire, (plain) => void (backBytes += plain?.length ?? 0)));
  for (let round = 1; round < 9; round++) {
    client.write(codec.seal(randomBytes(bytes)));
    await until("it is echoed", () => backBytes === round * bytes);
  }
}

export const CHUNK_FAULTS = ["changed", "cut off"] as const;

/** Behind `echoesChunks`: a chunk that is broken ends the connection for the origin; its sender gets no byte. */
export async function endsAtABrokenChunk(
  fault: (typeof CHUNK_FAULTS)[number],
  {
    client,
    codec,
    origin,
  }: { readonly client: Socket; readonly codec: StreamCodec; readonly origin: Echoes },
): Promise<void> {
  const reset = outcome(origin.latest());
  const chunk = codec.seal(randomBytes(1_000));
  let isClosed = false;
  client.once("close", () => (isClosed = true));
  if (fault === "changed") {
    chunk[500] = (chunk[500] as number) ^ 1;
    client.write(chunk);
    assert.equal(await reset, "ECONNRESET");
    // More than the buffers between them hold: it is still read.
    await new Promise<void>((done, fail) =>
      client.write(Buffer.alloc(16 << 20), (error) => (error ? fail(error) : done())),
    );
    assert.equal(isClosed, false);
    client.end();
  } else {
    client.end(chunk.subarray(0, 500));
    assert.equal(await reset, "ECONNRESET");
  }
  if (!isClosed) await once(client, "close");
  assert.equal(client.errored, null);
}
