/** What comes back from workers, and what is held meanwhile. */
import assert from "node:assert/strict";
import type { Meter } from "#core/meter.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { unlimited } from "./relayed.ts";

/** Counts what threads take and give back. */
export class Returning implements RelayBackend {
  taken = 0;
  returned = 0;
  readonly afterBytes = 1;
  readonly #backend: RelayBackend;

  constructor(backend: RelayBackend) {
    this.#backend = backend;
  }

  relay(
    { resume, ...pair }: Parameters<RelayBackend["relay"]>[0],
    ...rest: [never, never]
  ): Promise<void> | null {
    const counted = { ...pair, resume: (side: never) => (this.returned++, resume?.(side)) };
    const carried = this.#backend.relay(counted as never, ...rest);
    if (carried !== null) this.taken++;
    return carried;
  }
}

/** Pieces of one size, each held for as long as is said of its number; fails where two are held at once. */
export function holdingMeter(pieceBytes: number, holdMs: (pieces: number) => number) {
  const paid = { upload: 0, download: 0 };
  const held = { upload: 0, download: 0 };
  let pieces = 0;
  let cancelled = 0;
  const meter: Meter = {
    ...unlimited,
    free: false,
    pieceBytes,
    reserve(direction, bytes) {
      assert.equal(held[direction], 0, "a piece is charged while another one is held");
      paid[direction] += bytes;
      const ms = holdMs(pieces++);
      if (ms > 0) held[direction] = bytes;
      return ms;
    },
    trySend: (direction) => (held[direction] = 0),
    cancel(direction) {
      if (held[direction] > 0) cancelled++;
      paid[direction] -= held[direction];
      held[direction] = 0;
    },
    adjust: (direction, bytes) => void (paid[direction] += bytes),
  };
  return { meter, paid, cancelled: () => cancelled };
}
