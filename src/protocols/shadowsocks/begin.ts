import type { WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { beginWire } from "#net/stream/departing-stream.ts";
import { lastOf } from "#lib/at.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { methodOf } from "./methods.ts";
import { Sip004Codec } from "./sip004.ts";
import { chanceBy, Sip022ClientCodec } from "./sip022.ts";

/** A header waits this long for the first payload, which hides its length and saves a packet. */
export const OPEN_AFTER_MS = 20;

export interface ShadowsocksSettings {
  /** Of the AEAD editions. */
  readonly cipher: string;
  /** Server keys first, the user's own last. */
  readonly keys: readonly Uint8Array[];
  /** As `SharedSalts` has it; null: of SIP022, whose answers name their request. */
  readonly salts: SharedArrayBuffer | null;
}

export function beginShadowsocks(
  { cipher, keys, salts }: ShadowsocksSettings,
  destination: Destination,
  nowMs: () => number,
): WireStart {
  const [method, address] = [methodOf(cipher), encodeSocksAddress(destination)];
  const codec =
    salts === null
      ? new Sip022ClientCodec({ method, keys, address, chance: chanceBy(nowMs) })
      : new Sip004Codec({
          method,
          master: lastOf(keys),
          request: address,
          salts: new SharedSalts(salts),
        });
  return beginWire(codec, OPEN_AFTER_MS);
}
