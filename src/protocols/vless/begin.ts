import {
  FIRST_BLOCK,
  type Layer,
  type PaddingState,
  type VisionLayer,
  type WireStart,
} from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { ANSWER, COMMAND_TCP, encodeRequest, VISION } from "./wire.ts";

/** How long the request waits for first bytes to travel with; then it goes alone: the far side may speak first. */
export const OPEN_AFTER_MS = 100;

export interface VlessSettings {
  /** 16 bytes. */
  readonly id: Uint8Array;
  /** `VISION`, or empty: none. */
  readonly flow: string;
}

/** The client's side of `ClientCodec`, or of `VisionStream`. */
export function beginVless({ id, flow }: VlessSettings, destination: Destination): WireStart {
  const request = encodeRequest(id, { flow, command: COMMAND_TCP, destination });
  const theirs = { seenVersion: false, leftBytes: null };
  const isPadded = flow === VISION;
  const opening: Layer = isPadded
    ? { kind: "opening", ours: null, isOwed: false, theirs }
    : { kind: "opening", ours: request, isOwed: true, afterMs: OPEN_AFTER_MS, theirs };
  const blocks = isPadded ? [firstBlocks("client", id, { opening: request, afterMs: OPEN_AFTER_MS })] : [];
  return { kind: "plain", numbers: [], unread: null, layers: [opening, ...blocks] };
}

function firstBlocks(
  role: VisionLayer["role"],
  id: Uint8Array,
  writing: Omit<PaddingState, "isFirst">,
): VisionLayer {
  const first = { ...writing, isFirst: true };
  return { kind: "vision", role, id, mayLeave: true, reading: FIRST_BLOCK, writing: first };
}

const ANSWER_BYTES = Uint8Array.from(ANSWER);

/** The server's side of `VisionStream`, of a user with this id. */
export function beginPaddedAnswer(id: Uint8Array): WireStart {
  const blocks = firstBlocks("server", id, { opening: ANSWER_BYTES });
  return { kind: "plain", numbers: [], unread: null, layers: [blocks] };
}

const ANSWERED: WireStart = {
  kind: "plain",
  numbers: [],
  unread: null,
  layers: [{ kind: "opening", ours: ANSWER_BYTES, isOwed: false, theirs: null }],
};

/** The server's side of `ServerCodec`, the same for all clients. */
export function beginAnswer(): WireStart {
  return ANSWERED;
}
