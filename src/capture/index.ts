export { openCapture, type CaptureEnv } from "./capture.ts";
export { watchDefaultInterface } from "./default-interface.ts";
