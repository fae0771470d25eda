import type { WireStart } from "#core/handover.ts";
import type { Destination } from "#core/session.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { beginWire } from "#net/stream/departing-stream.ts";
import { methodOf } from "./methods.ts";
import { chanceBy, Sip022ClientCodec } from "./sip022.ts";

/** A header waits this long for the first payload, which hides its length and saves a packet. */
export const OPEN_AFTER_MS = 20;

/** Of SIP022. */
export interface ShadowsocksSettings {
  readonly cipher: string;
  /** Server keys first, the user's own last. */
  readonly keys: readonly Uint8Array[];
}

export function beginShadowsocks(
  { cipher, keys }: ShadowsocksSettings,
  destination: Destination,
  nowMs: () => number,
): WireStart {
  const address = encodeSocksAddress(destination);
  const codec = new Sip022ClientCodec({ method: methodOf(cipher), keys, address, chance: chanceBy(nowMs) });
  return beginWire(codec, OPEN_AFTER_MS);
}
