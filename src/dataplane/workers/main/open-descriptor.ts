import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { LEFT_OPEN, PLAIN } from "#dataplane/workers/shared/wire-spec.ts";
import { int32At } from "#lib/at.ts";

/** Of a wire that has ended, at its index: the descriptor that was not closed and is the caller's from here on; -1: there is none. */
export function takeOpenDescriptor(
  { descriptors, kinds }: Pick<RelayMemory, "descriptors" | "kinds">,
  index: number,
): number {
  if (kinds[index] !== LEFT_OPEN) return -1;
  const fd = int32At(descriptors, index);
  kinds[index] = PLAIN;
  descriptors[index] = -1;
  return fd;
}
