import { randomInt } from "node:crypto";
import type { WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { drawBytes } from "#lib/random-bytes.ts";
import { beginWire } from "#net/stream/departing-stream.ts";
import { VmessCodec } from "./codec.ts";
import { COMMAND_TCP, newChance, type RequestHeader, sealRequest } from "./header.ts";

/** A header waits this long for the first payload: some servers want more than the header in their first read. */
export const OPEN_AFTER_MS = 20;

/** The keys of one connection, and what it is for. */
export function newRequest(
  wants: Pick<RequestHeader, "options" | "security" | "command" | "destination">,
): RequestHeader {
  return { ...wants, iv: drawBytes(16), key: drawBytes(16), verifier: randomInt(256) };
}

export interface VmessSettings {
  /** 16 bytes. */
  readonly commandKey: Uint8Array;
  /** As the header of a request has them. */
  readonly security: number;
  readonly options: number;
}

export function beginVmess(
  { commandKey, security, options }: VmessSettings,
  destination: Destination,
  nowMs: () => number,
): WireStart {
  const request = newRequest({ options, security, command: COMMAND_TCP, destination });
  const sealed = sealRequest(commandKey, request, newChance(nowMs()));
  return beginWire(new VmessCodec(request, sealed), OPEN_AFTER_MS);
}
