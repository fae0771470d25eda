import type { WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { encodeStreamRequest } from "#transport/mux/request.ts";

/** A stream of a shared connection, by the `MuxRecipe` below it. */
export function beginMux(_settings: object, destination: Destination): WireStart {
  const target = Uint8Array.from(encodeStreamRequest({ kind: "stream", destination }));
  return { kind: "plain", numbers: [], unread: null, layers: [{ kind: "stream", target }] };
}
