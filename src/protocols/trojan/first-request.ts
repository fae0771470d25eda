import type { FirstRequestReader } from "#protocols/first-requests.ts";
import { COMMAND_CONNECT, decodeRequest, KEY_BYTES } from "./wire.ts";

/** By the wire form of the password. Nothing is answered. */
export const trojanRequests: FirstRequestReader = {
  layers: [],
  keyOf: (said) => said.toString("latin1", 0, KEY_BYTES),
  read(said) {
    const request = decodeRequest(said);
    if (request === null || request.value.command !== COMMAND_CONNECT) return null;
    return { destination: request.value.destination, size: request.size };
  },
};
