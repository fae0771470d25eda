export { openCapture, type CaptureEnv } from "./capture.ts";
export { cleanUp } from "./clean-up.ts";
export { holdTraffic } from "./hold.ts";
export { watchDefaultInterface } from "./default-interface.ts";
