import type { WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";

/** A stream of a session, by the `SessionRecipe` below it. */
export function beginAnytls(_settings: object, destination: Destination): WireStart {
  const target = Uint8Array.from(encodeSocksAddress(destination));
  return { kind: "plain", numbers: [], unread: null, layers: [{ kind: "stream", target }] };
}
