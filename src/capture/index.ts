export { openCapture, type CaptureEnv } from "./capture.ts";
export { cleanUp } from "./clean-up.ts";
export type { RoutingContext as RoutingPlace } from "./routing.ts";
export { Guard, removeGuard } from "./guard.ts";
export { GUARD_DEVICE } from "./route-hold.ts";
export { localNetworks } from "./local-networks.ts";
export { Ownership } from "./ownership.ts";
export { clearStale, isTableThere } from "./stale.ts";
export { watchDefaultInterface } from "./default-interface.ts";
