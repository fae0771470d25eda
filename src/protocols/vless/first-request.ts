import { layersOf } from "#core/wire-state.ts";
import type { FirstRequestReader } from "#protocols/first-requests.ts";
import { beginAnswer } from "./begin.ts";
import { COMMAND_TCP, decodeRequest, ID_BYTES, VERSION } from "./wire.ts";

/** By the 16 bytes of the id, without a flow. */
export const vlessRequests: FirstRequestReader = {
  layers: layersOf(beginAnswer()),
  keyOf: (said) => (said[0] === VERSION ? said.toString("latin1", 1, 1 + ID_BYTES) : ""),
  read(said) {
    const request = decodeRequest(said);
    if (request === null) return null;
    const { command, destination, flow } = request.value;
    if (command !== COMMAND_TCP || flow !== "" || destination === null) return null;
    return { destination, size: request.size };
  },
};
