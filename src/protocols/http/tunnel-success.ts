import type { ConnectRequest } from "./head.ts";

/** What a client of CONNECT is answered when it is connected. */
export function tunnelSuccess(version: ConnectRequest["version"]): Buffer {
  return Buffer.from(`HTTP/${version} 200 Connection established\r\n\r\n`);
}
