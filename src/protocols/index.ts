/** THE registry of protocols: one line each. */
import type { Protocol } from "#core/protocol.ts";

export const PROTOCOLS: readonly Protocol[] = [];
