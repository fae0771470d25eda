import type { WireStart } from "#core/handover.ts";
import type { Destination } from "#core/session.ts";
import { ANSWER, COMMAND_TCP, encodeRequest } from "./wire.ts";

/** How long the request waits for first bytes to travel with; then it goes alone: the far side may speak first. */
export const OPEN_AFTER_MS = 100;

/** Without a flow. */
export interface VlessSettings {
  /** 16 bytes. */
  readonly id: Uint8Array;
}

/** The client's side of `ClientCodec`. */
export function beginVless({ id }: VlessSettings, destination: Destination): WireStart {
  const ours = encodeRequest(id, { flow: "", command: COMMAND_TCP, destination });
  const theirs = { seenVersion: false, leftBytes: null };
  const opening = { kind: "opening", ours, isOwed: true, afterMs: OPEN_AFTER_MS, theirs } as const;
  return { kind: "plain", numbers: [], unread: null, layers: [opening] };
}

/** The server's side of `ServerCodec`. */
export function beginAnswer(): WireStart {
  const opening = { kind: "opening", ours: Uint8Array.from(ANSWER), isOwed: false, theirs: null } as const;
  return { kind: "plain", numbers: [], unread: null, layers: [opening] };
}
