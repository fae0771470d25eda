import type { WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { COMMAND_CONNECT, encodeRequest } from "./wire.ts";

/** How long the request waits for first bytes to travel with; then it goes alone: the far side may speak first. */
export const OPEN_AFTER_MS = 100;

export interface TrojanSettings {
  /** The wire form of the password. */
  readonly key: string;
}

/** The client's side of `RequestCodec`. */
export function beginTrojan({ key }: TrojanSettings, destination: Destination): WireStart {
  const ours = Uint8Array.from(encodeRequest(key, { command: COMMAND_CONNECT, destination }));
  const opening = { kind: "opening", ours, isOwed: true, afterMs: OPEN_AFTER_MS, theirs: null } as const;
  return { kind: "plain", numbers: [], unread: null, layers: [opening] };
}
